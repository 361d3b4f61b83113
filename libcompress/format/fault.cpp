// Messages of faults.
#include "libcompress/format/fault.h"

namespace quern {
namespace {

struct Message {
  StatusCode code;
  const char* text;
};

Message message_of(FormatFault what) {
  using enum FormatFault;
  using enum StatusCode;
  switch (what) {
    case none: break;
    case too_few_bytes: return {truncated, "{0} bytes are needed where {1} are left"};
    case ends_inside_number: return {truncated, "the data ends inside a number, at byte {0}"};
    case number_too_large: return {corrupt, "a number does not fit in 64 bits"};
    case number_not_shortest: return {corrupt, "a number is not in its shortest form"};
    case number_above_limit: return {corrupt, "a number is {0}, above its limit of {1}"};
    case bytes_left_over: return {corrupt, "{0} bytes are left over"};
  }
  return {internal, "a fault without a name"};
}

}  // namespace

Status status_of(const Fault& fault) {
  if (fault.ok()) return {};
  const Message message = message_of(fault.what);
  return Status(message.code, message.text, static_cast<std::int64_t>(fault.first),
                static_cast<std::int64_t>(fault.second));
}

}  // namespace quern
