// The interface of the runtime as its headers declare it (interface_entries.h).
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace quern::testing {

struct InterfaceEntry {
  InterfaceEntry(std::string what, std::string is) : name(std::move(what)), value(std::move(is)) {}
  std::string name;
  std::string value;
};

std::vector<InterfaceEntry> stand_in_interface();
std::vector<InterfaceEntry> cuda_interface();

}  // namespace quern::testing
