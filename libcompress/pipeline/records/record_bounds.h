// The bounds that the sections of a record set are written under.
#pragma once

#include <span>

#include <quern/execution.h>
#include <quern/records.h>

namespace quern {

/// Works out the enforced bound of every section of values from the requested one; those of rel from the exact range.
/// Fails on bounds that make no sense for a section, psnr and ratio among them.
Status resolve_record_bounds(RecordLayout& layout, std::span<const SectionData> data, TaskRunner& runner);

}  // namespace quern
