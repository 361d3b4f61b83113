// Parts of tensors: the same values as the whole tensor's, for what parts cost, and never silently wrong.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "checkpoint/convert/set_coding.h"
#include "libcompress/core/task_runner.h"
#include "tests/unit_checkpoint/store_fixture.h"
#include "tests/unit_checkpoint/training_run.h"

namespace quern::testing {
namespace {

using checkpoint::BoxRuns;
using checkpoint::CheckpointName;
using checkpoint::ElementType;
using checkpoint::FileSaveOptions;
using checkpoint::Manifest;
using checkpoint::Preset;
using checkpoint::Report;
using checkpoint::Restorer;

Box box_of(std::initializer_list<std::pair<std::uint64_t, std::uint64_t>> axes) {
  Box box;
  for (const auto& [begin, end] : axes) {
    box.begin[box.rank] = begin;
    box.end[box.rank++] = end;
  }
  return box;
}

/// Element by element.
Bytes cut(std::size_t width, const Box& part, const Shape& shape, std::span<const std::uint8_t> values) {
  Bytes out;
  auto at = part.begin;
  for (bool more = true; more;) {
    std::uint64_t index = 0;
    for (std::size_t a = 0; a < part.rank; ++a) index = index * shape[a] + at[a];
    out.insert(out.end(), values.begin() + static_cast<std::ptrdiff_t>(index * width),
               values.begin() + static_cast<std::ptrdiff_t>((index + 1) * width));
    more = false;
    for (std::size_t a = part.rank; a-- > 0 && !more;) {
      more = ++at[a] < part.end[a];
      if (!more) at[a] = part.begin[a];
    }
  }
  return out;
}

TEST(BoxRunsOfParts, AnyCutOfTheValues_CopiesEachElementToItsPlace) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    Box from, part, to;
    from.rank = part.rank = to.rank = 1 + random() % 4;
    std::array<std::uint64_t, 4> extents{};
    for (std::size_t a = 0; a < from.rank; ++a) {
      from.begin[a] = random() % 3;
      extents[a] = 1 + random() % 6;
      from.end[a] = from.begin[a] + extents[a];
      part.begin[a] = from.begin[a] + (random() % 2 == 0 ? 0 : random() % extents[a]);
      part.end[a] = random() % 2 == 0 ? from.end[a] : part.begin[a] + 1 + random() % (from.end[a] - part.begin[a]);
      to.begin[a] = part.begin[a] - (part.begin[a] > 0 && random() % 2 == 0 ? 1 : 0);
      to.end[a] = part.end[a] + random() % 2;
    }
    const Shape shape = from.shape().value();
    Bytes values(shape.elems() * 2);
    for (auto& value : values) value = static_cast<std::uint8_t>(random());
    Bytes target(to.shape()->elems() * 2, 0xEE);
    Bytes expected = target;
    auto at = part.begin;
    for (bool more = true; more;) {
      std::uint64_t i = 0, j = 0;
      for (std::size_t a = 0; a < from.rank; ++a) {
        i = i * (from.end[a] - from.begin[a]) + at[a] - from.begin[a];
        j = j * (to.end[a] - to.begin[a]) + at[a] - to.begin[a];
      }
      std::memcpy(expected.data() + 2 * j, values.data() + 2 * i, 2);
      more = false;
      for (std::size_t a = from.rank; a-- > 0 && !more;) {
        more = ++at[a] < part.end[a];
        if (!more) at[a] = part.begin[a];
      }
    }
    for (std::size_t begin = 0; begin < values.size();) {
      const std::size_t bytes = std::min<std::size_t>(1 + random() % 40, values.size() - begin);
      const auto piece = std::span<const std::uint8_t>(values).subspan(begin, bytes);
      const Bytes before = target;
      checkpoint::copy_runs(2, part, from, begin, piece, to, target);
      EXPECT_EQ(BoxRuns(2, part, from).meets(begin, begin + bytes) || before == target, true);
      begin += bytes;
    }
    ASSERT_EQ(target, expected) << "round " << round << " of seed 11";
  }
}

/// Three states of a run whose weight has 1100 x 700 values, three chunks.
class PartialReads : public StoreFixture {
 protected:
  void save(Preset preset, bool replay) {
    run_.step();
    std::optional<std::uint64_t> base;
    for (std::uint64_t step = 1; step <= 3; ++step, run_.step()) {
      FileSaveOptions options;
      options.preset = preset;
      options.save.step = step;
      options.save.base = base;
      options.save.limits.chain_percent = options.save.limits.restore_percent = 100000;
      base = step;
      Vector<String> paths;
      paths.push_back(put_file(disk_, "s" + std::to_string(step), run_.state(), {{"lr", "0.001"}}));
      if (replay && step > 1) {
        paths.push_back(put_file(disk_, "g" + std::to_string(step), run_.gradients()));
        options.replay = checkpoint::parse_replay_rule(TrainingRun::rule(), report_).value();
      }
      ASSERT_TRUE(checkpoint::save_files(store_, paths, options, runner_, report_).ok()) << report_.problem;
    }
  }
  /// Parts of all tensors of a step, against the whole tensors.
  void expect_parts(std::uint64_t step) {
    const auto all = restore_all(store_, step, report_);
    ASSERT_TRUE(all.ok()) << report_.problem;
    const Manifest manifest = store_.at_step(step, report_).value();
    Execution two;
    two.threads = 2;
    RunnerHandle threads(two);
    Restorer restorer(store_, threads.get());
    std::mt19937 random(7);
    for (std::uint32_t i = 0; i < manifest.tensors.size(); ++i) {
      const checkpoint::ManifestTensor& tensor = manifest.tensors[i];
      const Shape& shape = tensor.what.shape;
      const std::size_t width = codec::tensor::element_bytes(tensor.what.type);
      for (std::size_t round = 0; round < 8; ++round) {
        Box part = Box::whole(shape);
        for (std::size_t a = 0; a < part.rank; ++a) {
          if (round == a) continue;
          part.begin[a] = random() % shape[a];
          part.end[a] = part.begin[a] + 1 + random() % std::min<std::uint64_t>(shape[a] - part.begin[a], 5);
        }
        Bytes out(part.shape()->elems() * width);
        ASSERT_TRUE(restorer.part(manifest.name, i, part, Box::whole(shape), part, out, report_).ok())
            << report_.problem;
        EXPECT_EQ(out, cut(width, part, shape, all->at(std::string(tensor.name)))) << tensor.name << " " << round;
      }
    }
  }

  TrainingRun run_{kernels::AdamOrder::fused, 1100, 700};
};

TEST_F(PartialReads, ExactChain_GivesTheSameValues) {
  save(Preset::exact, false);
  EXPECT_TRUE(store_.at_step(3, report_)->tensors[0].base.has_value());
  expect_parts(3);
}

TEST_F(PartialReads, LossyChainWithDirections_GivesTheSameValues) {
  save(Preset::archive, false);
  expect_parts(3);
}

TEST_F(PartialReads, ReplayedTensors_GiveTheSameValues) {
  save(Preset::exact, true);
  expect_parts(2);
  expect_parts(3);
}

/// Chunks that a part does not meet are not read: damage there does not matter, and damage where it reads is told.
TEST_F(PartialReads, DamagedChunk_FailsThePartsThatMeetItAndNoOthers) {
  save(Preset::exact, false);
  const Manifest manifest = store_.at_step(3, report_).value();
  const checkpoint::ManifestTensor& tensor = manifest.tensors[0];
  const String path =
      checkpoint::join({store_.data_folder(manifest.name.id), "/", checkpoint::numbered_name("part", 0)});
  std::size_t failed = 0;
  for (std::size_t chunk = 0; chunk < 3; ++chunk) {
    std::uint64_t offset = 0;
    {
      const auto reader = checkpoint::PartReader::open(disk_, path, checkpoint::part_identity(manifest.name, 0),
                                                       manifest.parts[0], report_);
      ASSERT_TRUE(reader.ok()) << report_.problem;
      const auto& record = reader->records()[tensor.record + chunk];
      offset = record.end() - 9;
    }
    disk_.bytes_of(std::string(path))[offset] ^= 4;
    for (std::uint64_t row = 0; row < 1100; row += 99) {
      Restorer restorer(store_, runner_);
      const Box part = box_of({{row, row + 1}, {0, 700}});
      Bytes out(2800);
      const Status read = restorer.part(manifest.name, 0, part, Box::whole(tensor.what.shape), part, out, report_);
      const std::size_t first = row * 2800 >> 20, last = (row * 2800 + 2799) >> 20;
      const bool meets =
          first == chunk || last == chunk || chunk == 0;  // the first record also holds the tensor's head
      EXPECT_EQ(read.code(), meets ? StatusCode::checksum_mismatch : StatusCode::ok) << chunk << " " << row;
      failed += meets ? 1 : 0;
      if (meets) {
        EXPECT_NE(report_.problem.find("tensor 'param.a'"), String::npos) << report_.problem;
      }
    }
    disk_.bytes_of(std::string(path))[offset] ^= 4;
  }
  EXPECT_GT(failed, 12U);
}

}  // namespace
}  // namespace quern::testing
