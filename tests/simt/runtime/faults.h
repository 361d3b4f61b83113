// Says who touched what when memory that is closed or does not exist is touched.
#pragma once

namespace simt {

/// From now on a segmentation fault prints a line about it first; the program ends as it would have.
void report_faults();

}  // namespace simt
