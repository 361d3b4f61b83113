// Declared fill values as words, for scans.
#pragma once

#include <cstdint>
#include <span>

#include <quern/memory.h>

#include "kernels/mask/scan.h"
#include "libcompress/pipeline/mask/words.h"

namespace quern::mask {

/// Declared fill values as words; both zeros when one of them is declared.
template <class W>
Vector<typename W::Word> fill_words(std::span<const std::uint64_t> fill_bits) {
  Vector<typename W::Word> fills;
  for (const std::uint64_t bits : fill_bits) {
    const kernels::FillWords<W> words(bits);
    fills.insert(fills.end(), words.words, words.words + words.count);
  }
  return fills;
}

}  // namespace quern::mask
