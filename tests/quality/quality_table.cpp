// Prints what the presets do to a small training run, as a Markdown table, or with --json as one JSON object a line.
#include <cstdio>
#include <cstring>

#include "tests/quality/at_rest.h"

namespace {

using quern::testing::QualityRow;
using quern::testing::QualityTable;

const char* expectation_name(quern::testing::Expectation expected) {
  switch (expected) {
    case quern::testing::Expectation::within: return "within";
    case quern::testing::Expectation::beyond: return "beyond";
    case quern::testing::Expectation::unknown: break;
  }
  return "unknown";
}

void print_json(double beta2, const QualityTable& table) {
  std::printf("{\"beta2\":%g,\"late_loss\":%.6f,\"late_loss_low_rate\":%.6f,\"frozen_rows\":%zu,\"rows\":[", beta2,
              table.late_loss, table.late_loss_low, table.frozen_rows);
  const char* separator = "";
  for (const QualityRow& row : table.rows) {
    std::printf(
        "%s{\"name\":\"%s\",\"group\":\"%s\",\"first_evaluation\":%.3e,\"first_50\":%.3e,\"late\":%.3e,"
        "\"limit\":%.3e,\"within\":%s,\"expected\":\"%s\"}",
        separator, row.name.c_str(), row.group.c_str(), row.first_evaluation, row.first_mean, row.late_mean, row.limit,
        row.within() ? "true" : "false", expectation_name(row.expected));
    separator = ",";
  }
  std::printf("]}\n");
}

void print_markdown(double beta2, const QualityTable& table) {
  std::printf(
      "beta2 %g. Lossless late loss %.4f, at rate 3e-5 %.4f nats; %zu frozen rows. Differences in 1e-4 nats.\n\n",
      beta2, table.late_loss, table.late_loss_low, table.frozen_rows);
  std::printf(
      "| state | run | first evaluation | first 50 steps | late | limit | within |\n|---|---|---|---|---|---|---|\n");
  for (const QualityRow& row : table.rows)
    std::printf("| %s | %s | %+.2f | %+.2f | %+.2f | %.1f | %s |\n", row.name.c_str(), row.group.c_str(),
                row.first_evaluation * 1e4, row.first_mean * 1e4, row.late_mean * 1e4, row.limit * 1e4,
                row.within() ? "yes" : "no");
}

void print_at_rest(double beta2, bool end_rate, bool json) {
  const auto rows = quern::testing::measure_at_rest(beta2, end_rate);
  const char* const rate = end_rate ? "3e-5" : "scheduled";
  if (!json)
    std::printf(
        "\nMoments coded at each of 250 steps, beta2 %g, rate %s. Differences in 1e-4 nats.\n\n"
        "| codes | first 50 steps | late | blocks beside slots |\n|---|---|---|---|\n",
        beta2, rate);
  for (const quern::testing::AtRestRow& row : rows) {
    const char* const format = json ? "{\"at_rest\":\"%s\",\"first_50\":%.3e,\"late\":%.3e,\"beside_share\":%.3f,"
                                      "\"beta2\":%g,\"rate\":\"%s\"}\n"
                                    : "| %s | %+.2f | %+.2f | %.3f |\n";
    const double unit = json ? 1 : 1e4;
    std::printf(format, row.name.c_str(), row.first_mean * unit, row.late_mean * unit, row.exceptional_share, beta2,
                rate);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool json = argc > 1 && std::strcmp(argv[1], "--json") == 0;
  for (const double beta2 : {0.999, 0.95}) {
    const QualityTable table = quern::testing::measure_quality(beta2);
    json ? print_json(beta2, table) : print_markdown(beta2, table);
    for (const bool end_rate : {false, true}) print_at_rest(beta2, end_rate, json);
  }
  return 0;
}
