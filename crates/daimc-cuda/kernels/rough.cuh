// The neighbour search in half precision, with one tensor core product.

#ifndef ROUGH_CUH
#define ROUGH_CUH

#include "common.cuh"
#include "lists.cuh"

typedef unsigned short Half;

__device__ inline Half halved_value(float value) {
    Half half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
    return half;
}

__device__ inline float whole_value(Half half) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
    return value;
}

namespace half {

constexpr int QUERIES = 256;
constexpr int OTHERS = 64;
constexpr int DEPTH = 64;
constexpr int THREADS = 128;

// Length of a slab: DEPTH numbers of each row.
constexpr int OWN = QUERIES * DEPTH;
constexpr int THEIRS = OTHERS * DEPTH;

// Candidates that a row can gain between two checks of its buffer, and rows of a warp.
constexpr int STEP = 8;
constexpr int ROWS = 64;

// Sort key of a neighbour: higher scores come first.
__device__ inline Key key(float score, int other) {
    const unsigned bits = __float_as_uint(score);
    return (Key)(bits >> 31 ? bits : ~bits & 0x7fffffffu) << 32 | (unsigned)other;
}

__device__ inline float score(Key key) {
    const unsigned bits = (unsigned)(key >> 32);
    return key == NOBODY ? -infinity() : __uint_as_float(bits >> 31 ? bits : ~bits & 0x7fffffffu);
}

// Loads four 8 x 8 matrices of a slab; each lane passes the address of one row of one of them.
__device__ inline void matrices(unsigned* to, unsigned from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}

// c += a b for tiles of 16 x 8 x 16.
__device__ inline void tensor(float* c, const unsigned* a, const unsigned* b) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Copies a slab of COUNT rows. The order of the eight pieces of a row depends on the row, so that the same piece of eight rows is
// read without bank conflicts.
template <int COUNT>
__device__ inline void copy_slab(Half* to, const Half* from, long long width) {
    const int row = threadIdx.x / 8, piece = threadIdx.x % 8;
#pragma unroll
    for (int i = 0; i < COUNT; i += THREADS / 8)
        copy(to + (row + i) * DEPTH + (piece ^ row % 8) * 8, from + (row + i) * width + piece * 8, true);
}

// The score of y for x is x y - |y|^2 / 2, which is higher the nearer they are. A warp compares 64 rows with 64 others at a time and
// owns the lists of its rows. Tiles of others are visited `stride` tiles apart: in storage order, data sorted by similarity would
// replace whole lists again and again.
template <bool RESIDENT, int STAGES>
__device__ inline void search(const Half* __restrict__ x, long long width, const float* __restrict__ starts, long long rows,
                              long long tiles, long long stride, long long first, Key* waiting, Key* lists) {
    extern __shared__ __align__(128) unsigned char shared[];
    const int slabs = (int)(width / DEPTH);
    Half* const queries = reinterpret_cast<Half*>(shared);
    Half* const others = queries + (RESIDENT ? slabs : STAGES) * OWN;
    float* const begun = reinterpret_cast<float*>(others + STAGES * THEIRS);
    float* const limits = begun + STAGES * OTHERS;
    int* const counts = reinterpret_cast<int*>(limits + QUERIES);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, member = lane % 4;
    const long long query = first + (long long)blockIdx.x * QUERIES;
    waiting += ((long long)blockIdx.x * QUERIES + warp * ROWS) * WAITING;
    lists += (query + warp * ROWS) * LIST;
    float* const own_limits = limits + warp * ROWS;
    int* const own_counts = counts + warp * ROWS;

    for (int i = threadIdx.x; i < QUERIES; i += THREADS) {
        limits[i] = query + i < rows ? -infinity() : infinity();
        counts[i] = 0;
    }
    for (int row = 0; row < ROWS; row++)
        if (query + warp * ROWS + row < rows) lists[row * LIST + lane] = NOBODY;

    long long next = 0, next_count = 0;
    int next_slab = 0, next_stage = 0;
    auto load = [&]() {
        if (next_count < tiles) {
            copy_slab<OTHERS>(others + next_stage * THEIRS, x + next * OTHERS * width + next_slab * DEPTH, width);
            if (!RESIDENT) copy_slab<QUERIES>(queries + next_stage * OWN, x + query * width + next_slab * DEPTH, width);
            if (next_slab == 0 && threadIdx.x < OTHERS / 4)
                copy(begun + next_stage * OTHERS + threadIdx.x * 4, starts + next * OTHERS + threadIdx.x * 4, true);
            if (++next_slab == slabs) {
                next_slab = 0;
                next_count++;
                next += stride;
                if (next >= tiles) next -= tiles;
            }
        }
        next_stage = next_stage == STAGES - 1 ? 0 : next_stage + 1;
        copies_begun();
    };
    // Merges the buffers that hold more than `most` candidates into their lists.
    auto merge = [&](int most) {
        __syncwarp();
        for (int half = 0; half < ROWS; half += 32) {
            unsigned todo = __ballot_sync(ALL, own_counts[half + lane] > most);
            for (; todo != 0; todo &= todo - 1) {
                const int row = half + __ffs(todo) - 1;
                const Key found = sorted(lane < own_counts[row] ? waiting[row * WAITING + lane] : NOBODY, lane);
                const Key kept = merged(lists[row * LIST + lane], found, lane);
                lists[row * LIST + lane] = kept;
                __syncwarp();
                if (lane == LIST - 1) {
                    own_limits[row] = score(kept);
                    own_counts[row] = 0;
                }
            }
        }
        __syncwarp();
    };

    if (RESIDENT)
        for (int slab = 0; slab < slabs; slab++)
            copy_slab<QUERIES>(queries + slab * OWN, x + query * width + slab * DEPTH, width);
    for (int i = 0; i < STAGES - 1; i++) load();

    // The row, and the piece of it, whose address a lane passes for the four matrices of a fragment.
    const unsigned own_at = (unsigned)__cvta_generic_to_shared(queries) + (warp * ROWS + lane % 16) * (DEPTH * 2) +
                            ((lane / 16) ^ lane % 8) * 16;
    const unsigned their_at = (unsigned)__cvta_generic_to_shared(others) + (lane / 16 * 8 + lane % 8) * (DEPTH * 2) +
                              ((lane / 8 % 2) ^ lane % 8) * 16;
    int stage = 0;
    long long tile = 0;
    for (long long done = 0; done < tiles; done++) {
        float sums[4][8][4];
        for (int slab = 0; slab < slabs; slab++) {
            copies_done<STAGES - 2>();
            __syncthreads();
            load();
            if (slab == 0) {
#pragma unroll
                for (int n = 0; n < 8; n++) {
                    const float2 start = *reinterpret_cast<const float2*>(begun + stage * OTHERS + 8 * n + 2 * member);
#pragma unroll
                    for (int m = 0; m < 4; m++) {
                        sums[m][n][0] = sums[m][n][2] = start.x;
                        sums[m][n][1] = sums[m][n][3] = start.y;
                    }
                }
            }
            const unsigned own = own_at + (RESIDENT ? slab : stage) * (OWN * 2), theirs = their_at + stage * (THEIRS * 2);
            unsigned a[2][4][4], b[2][8][2];
            auto fragments = [&](int step) {
#pragma unroll
                for (int n = 0; n < 4; n++) matrices(b[step % 2][2 * n], (theirs ^ step * 32) + n * (16 * DEPTH * 2));
#pragma unroll
                for (int m = 0; m < 4; m++) matrices(a[step % 2][m], (own ^ step * 32) + m * (16 * DEPTH * 2));
            };
            fragments(0);
#pragma unroll
            for (int step = 0; step < DEPTH / 16; step++) {
                if (step < DEPTH / 16 - 1) fragments(step + 1);
#pragma unroll
                for (int n = 0; n < 8; n++)
#pragma unroll
                    for (int m = 0; m < 4; m++) tensor(sums[m][n], a[step % 2][m], b[step % 2][n]);
            }
            stage = stage == STAGES - 1 ? 0 : stage + 1;
        }

        float limit[4][2];
        auto limits_now = [&]() {
#pragma unroll
            for (int m = 0; m < 4; m++)
#pragma unroll
                for (int half = 0; half < 2; half++) limit[m][half] = own_limits[16 * m + 8 * half + group];
        };
        limits_now();
        // Groups of eight others of which at least one is nearer than the last entry of a list.
        unsigned todo = 0;
#pragma unroll
        for (int n = 0; n < 8; n++) {
            bool any = false;
#pragma unroll
            for (int i = 0; i < 16; i++) any |= sums[i / 4][n][i % 4] > limit[i / 4][i % 4 / 2];
            if (any) todo |= 1u << n;
        }
        todo = __reduce_or_sync(ALL, todo);
        while (todo != 0) {
            // If a buffer is full, the remaining candidates follow after the merge.
            bool full = false;
#pragma unroll
            for (int n = 0; n < 8; n++) {
                if (full || (todo >> n & 1) == 0) continue;
                todo &= ~(1u << n);
                unsigned hits = 0;
#pragma unroll
                for (int i = 0; i < 16; i++)
                    if (sums[i / 4][n][i % 4] > limit[i / 4][i % 4 / 2]) hits |= 1u << i;
                for (; hits != 0; hits &= hits - 1) {
                    const int hit = __ffs(hits) - 1;
                    float found = sums[0][n][0];
#pragma unroll
                    for (int i = 1; i < 16; i++)
                        if (hit == i) found = sums[i / 4][n][i % 4];
                    const int row = hit / 4 * 16 + hit % 4 / 2 * 8 + group;
                    const long long other = tile * OTHERS + 8 * n + 2 * member + hit % 2;
                    if (other == query + warp * ROWS + row) continue;
                    const int at = atomicAdd(own_counts + row, 1);
                    waiting[row * WAITING + at] = key(found, (int)other);
                    full |= at + 1 > WAITING - STEP;
                }
                full = __any_sync(ALL, full);
            }
            if (full) {
                merge(WAITING - STEP);
                limits_now();
            }
        }
        tile += stride;
        if (tile >= tiles) tile -= tiles;
    }
    copies_done<0>();
    merge(0);
}

}  // namespace half

#endif
