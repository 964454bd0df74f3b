// Constants that the kernels share with the CPU. A test compares them with `daimc::accelerator::v_step`, where they are explained.

#ifndef CONSTANTS_CUH
#define CONSTANTS_CUH

#define SMALLEST_DIAGONAL 1e-280
#define SMALLEST_REMAINDER 1e-6

#endif
