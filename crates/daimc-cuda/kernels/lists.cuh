// The nearest of a row, in the lanes of a warp.

#ifndef LISTS_CUH
#define LISTS_CUH

typedef unsigned long long Key;

#define ALL 0xffffffffu

// Neighbours that are kept, one for each lane of a warp, and those that wait to be merged into them.
constexpr int LIST = 32;
constexpr int WAITING = 32;

constexpr Key NOBODY = ~0ull;

__device__ inline float infinity() { return __uint_as_float(0x7f800000); }

// The keys of a warp in increasing order.
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

// The 32 least of two increasing lists, increasing.
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
