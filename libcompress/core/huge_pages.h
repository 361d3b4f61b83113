// Large blocks of memory on pages of their own, which the system has back when they are freed; very large ones on huge
// pages where there are any: on small ones the first chunk that works in such a block takes nearly half as long again,
// for page faults.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern {

/// Page-aligned memory of so many bytes for unmap_huge_pages; null if that is too little to be worth it, if there is
/// none, or under a sanitizer, which knows the heap better.
std::uint8_t* map_huge_pages(std::size_t bytes) noexcept;
void unmap_huge_pages(std::uint8_t* pages, std::size_t bytes) noexcept;

}  // namespace quern
