// Lists of the nearest neighbours of a row, one entry per lane of a warp.

#ifndef LISTS_CUH
#define LISTS_CUH

typedef unsigned long long Key;

#define ALL 0xffffffffu

// Length of a list, one entry per lane, and of the buffer of candidates that are not yet merged into it.
constexpr int LIST = 32;
constexpr int WAITING = 32;

// An empty entry of a list.
constexpr Key NOBODY = ~0ull;

__device__ inline float infinity() { return __uint_as_float(0x7f800000); }

// Sorts the keys of a warp in increasing order.
__device__ inline Key sorted(Key own, int lane) {
#pragma unroll
    for (int size = 2; size <= 32; size *= 2)
#pragma unroll
        for (int distance = size / 2; distance > 0; distance /= 2) {
            const Key other = __shfl_xor_sync(ALL, own, distance);
            const bool first = (lane & distance) == 0, rising = (lane & size) == 0;
            own = (first == rising) == (own < other) ? own : other;
        }
    return own;
}

// The 32 smallest keys of two increasing lists, in increasing order.
__device__ inline Key merged(Key one, Key other, int lane) {
    const Key turned = __shfl_sync(ALL, other, 31 - lane);
    Key own = one < turned ? one : turned;
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        const Key far = __shfl_xor_sync(ALL, own, distance);
        own = ((lane & distance) == 0) == (own < far) ? own : far;
    }
    return own;
}

#endif
