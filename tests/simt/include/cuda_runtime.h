// Stand-in for CUDA's header of the same name: what a .cu file needs besides the interface of the runtime.
#pragma once

#include "cuda_runtime_api.h"
#include "simt/arithmetic_functions.h"
#include "simt/atomic_functions.h"
#include "simt/device_words.h"
#include "simt/kernel_launch.h"
#include "simt/running_thread.h"
#include "simt/warp_functions.h"
