// Requested bounds to enforced ones, section by section.
#include "libcompress/pipeline/records/record_bounds.h"

#include "libcompress/pipeline/encode/bound_resolution.h"
#include "libcompress/pipeline/range.h"

namespace quern {
namespace {

Status resolve(RecordSection& section, std::span<const std::uint8_t> values, TaskRunner& runner) {
  section.enforced = {};
  section.range.reset();
  if (section.form == SectionForm::bytes) {
    section.requested = {};
    return {};
  }
  ErrorBound& requested = section.requested;
  if (requested.kind == BoundKind::psnr || requested.kind == BoundKind::ratio)
    return Status(StatusCode::invalid_bound, "a section of records takes a bound of kind lossless, abs, rel or pwrel");
  QUERN_RETURN_IF_ERROR(requested.check(section.dtype));
  if (requested.kind == BoundKind::lossless) requested.value = 0;
  std::optional<ExactRange> range;
  if (requested.kind == BoundKind::rel) {
    const std::uint64_t elems[] = {section.items * section.item_elems};
    QUERN_ASSIGN_OR_RETURN(const Shape shape, Shape::make(elems));
    range = exact_range({values.data(), section.dtype, shape}, {}, runner);
  }
  const ResolvedBound bound = resolve_bound(requested, range);
  section.enforced = bound.enforced;
  section.range = bound.range;
  return {};
}

}  // namespace

Status resolve_record_bounds(RecordLayout& layout, std::span<const SectionData> data, TaskRunner& runner) {
  for (std::size_t i = 0; i < layout.sections.size(); ++i)
    QUERN_RETURN_IF_ERROR(resolve(layout.sections[i], data[i].values, runner));
  return {};
}

}  // namespace quern
