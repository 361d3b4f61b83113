// What the command uses of fmt's library, compiled into it, for the Python package: the shared library would bring the
// system's C++ library into a process that has one inside (cmake/compile_flags.cmake).
#include <fmt/format-inl.h>

template FMT_API auto fmt::detail::thousands_sep_impl<char>(fmt::detail::locale_ref)
    -> fmt::detail::thousands_sep_result<char>;
template FMT_API auto fmt::detail::decimal_point_impl<char>(fmt::detail::locale_ref) -> char;
