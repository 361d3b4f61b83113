// How wide vectors are in the kernels of one instruction set: as wide as the widest registers. GCC takes apart, element
// by element, much of what is done to wider vectors, and keeps them in memory. A macro, as the attribute vector_size
// takes nothing that depends on a template's parameter.
#pragma once

#if defined(__AVX512F__)
#define QUERN_VECTOR_BYTES 64
#else
#define QUERN_VECTOR_BYTES 32
#endif
