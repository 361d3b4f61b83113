// Readers of short texts: shapes, boxes, element types. What is accepted must survive being written and read again.
#include <quern/dtype.h>
#include <quern/shape.h>

#include "tests/fuzz/fuzz_common.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace quern;
  const std::string_view text(reinterpret_cast<const char*>(data), size);

  const auto shape = Shape::parse(text);
  if (shape.ok() && shape->rank() > 0) {
    QUERN_FUZZ_CHECK(shape->rank() <= kMaxRank);
    const auto again = Shape::parse(shape->text());
    QUERN_FUZZ_CHECK(again.ok(), shape->text());
    QUERN_FUZZ_CHECK(*again == *shape, shape->text());
  }
  const std::uint64_t extents[] = {10, 9, 8};
  const auto within = Shape::make(extents);
  QUERN_FUZZ_CHECK(within.ok());
  const auto box = Box::parse(text, *within);
  if (box.ok()) {
    QUERN_FUZZ_CHECK(box->check(*within).ok(), std::string(text));
    QUERN_FUZZ_CHECK(box->shape().ok(), std::string(text));
  }
  if (const auto dtype = parse_dtype(text)) QUERN_FUZZ_CHECK(text == dtype_name(*dtype));
  return 0;
}
