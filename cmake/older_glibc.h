/* For wheels, which run with a glibc from 2.34 on: symbols that a newer one has again under another version. */
#ifndef QUERN_CMAKE_OLDER_GLIBC_H
#define QUERN_CMAKE_OLDER_GLIBC_H
#if defined(__x86_64__) && defined(__linux__)
__asm__(".symver hypot,hypot@GLIBC_2.2.5");
#endif
#endif
