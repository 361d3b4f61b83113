// The setting `mask`, which says in what form masks are stored: 1 (without the setting) or 2, by levels. It is the
// pipeline's; codecs are not told of it.
#pragma once

#include <algorithm>
#include <string_view>

#include <quern/codec.h>
#include <quern/status.h>

#include "libcompress/pipeline/mask/mask.h"

namespace quern {

inline constexpr std::string_view kMaskSetting = "mask";

/// Fails on a form that does not exist.
inline Result<mask::MaskForm> mask_form(const Settings& settings) {
  mask::MaskForm form = mask::MaskForm::decisions;
  for (const auto& [name, value] : settings) {
    if (name != kMaskSetting) continue;
    if (value != "1" && value != "2") return Status(StatusCode::invalid_argument, "mask: 1 or 2");
    form = value == "2" ? mask::MaskForm::levels : mask::MaskForm::decisions;
  }
  return form;
}

/// The settings of codecs.
inline Settings codec_settings(Settings settings) {
  settings.erase(std::remove_if(settings.begin(), settings.end(),
                                [](const auto& setting) { return setting.first == kMaskSetting; }),
                 settings.end());
  return settings;
}

}  // namespace quern
