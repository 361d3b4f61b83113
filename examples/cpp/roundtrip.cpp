// Compresses a field under a relative bound on two threads, decodes one box of it, and has every value checked.
#include <cmath>
#include <cstdio>
#include <vector>

#include <quern/quern.hpp>

int main() {
  try {
    const quern::Extents extents{32, 48, 64};  // slowest axis first
    std::vector<double> values(32 * 48 * 64);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = 280 + 15 * std::sin(0.003 * static_cast<double>(i));

    quern::Context context(2);
    const quern::ConstArray field(values.data(), extents);
    const std::vector<std::uint8_t> stream = quern::compress(context, quern::Params("rel=1e-4"), field);

    std::vector<double> box(4 * 8 * 8);
    quern::region(context, stream, {10, 20, 30}, {14, 28, 38}, quern::Array(box.data(), {4, 8, 8}));

    const quern::StreamInfo info = quern::inspect(stream);
    const quern::Verdict verdict = quern::verify(context, field, stream);
    std::printf("quern %s: %zu bytes in %zu, |x - x'| <= %g, %llu violations; corner of the box: %g\n",
                quern_version_string(), values.size() * sizeof(double), stream.size(), info.enforced_value,
                static_cast<unsigned long long>(verdict.violations), box.front());
    return verdict.violations == 0 ? 0 : 1;
  } catch (const quern::Error& error) {
    std::fprintf(stderr, "%s: %s\n", error.name(), error.what());
    return 1;
  }
}
