// The setting `mask`, which says in what form masks are stored: 1, decisions, or 2, by levels. Without it, arrays with
// declared fill values get the form that a device codes in parallel from codecs made for throughput; others get the form
// of decisions, which every reader knows. The setting is the pipeline's; codecs are not told of it.
#pragma once

#include <algorithm>
#include <string_view>

#include <quern/codec.h>
#include <quern/compress.h>
#include <quern/status.h>

#include "libcompress/pipeline/mask/mask.h"

namespace quern {

inline constexpr std::string_view kMaskSetting = "mask";

/// Fails on a form that does not exist.
inline Result<mask::MaskForm> mask_form(const CompressOptions& options, CodecTier tier) {
  const bool for_devices = tier == CodecTier::throughput && !options.fill_bits.empty();
  mask::MaskForm form = for_devices ? mask::MaskForm::levels : mask::MaskForm::decisions;
  for (const auto& [name, value] : options.settings) {
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
