// The text of the last error of a context or of a thread, in every C interface.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include <quern/status.h>

namespace quern::capi {

/// One line of text that never allocates; longer ones are cut.
class ErrorLine {
 public:
  void clear() { text_[0] = '\0'; }
  void set(std::string_view text) { end(copy(text, text_.size() - 1)); }
  void set(const Status& status) { (void)status.write_text(text_); }
  /// "WHERE: text of the status"; without a place, the text alone.
  void set(std::string_view where, const Status& status) {
    if (where.empty()) return set(status);
    std::size_t at = copy(where, text_.size() / 2);
    text_[at++] = ':';
    text_[at++] = ' ';
    (void)status.write_text(std::span(text_).subspan(at));
  }
  const char* c_str() const { return text_.data(); }

 private:
  std::size_t copy(std::string_view text, std::size_t most) {
    const std::size_t length = std::min(text.size(), most);
    std::copy_n(text.data(), length, text_.data());
    return length;
  }
  void end(std::size_t at) { text_[at] = '\0'; }

  std::array<char, 2048> text_{};
};

}  // namespace quern::capi
