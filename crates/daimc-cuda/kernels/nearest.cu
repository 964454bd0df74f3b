// The nearest others of every row, by comparing all pairs.
//
//   centred   rows as they are compared: scaled, and counted from their mean
//   nearest   the LIST nearest of each row, by |x|^2 + |y|^2 - 2 x y with products of tensor cores
//   ranked    those in the order of their true distances

#include "common.cuh"

typedef unsigned long long Key;

#define ALL 0xffffffffu
#define THREADS 256
#define STAGES 3

constexpr int QUERIES = 128;
constexpr int OTHERS = 128;
constexpr int DEPTH = 16;
constexpr int STRIDE = DEPTH + 4;
constexpr int TILE = QUERIES * STRIDE;

// Neighbours that are kept, one for each lane of a warp, and those that wait to be merged into them. A step adds 16 at most.
constexpr int LIST = 32;
constexpr int WAITING = 32;
constexpr int STEP = 16;

constexpr Key NOBODY = ~0ull;

// A neighbour: those that are nearer come first, and of those that are equally near the first. Distances are not negative.
__device__ inline Key key(float square, int other) { return (Key)__float_as_uint(square) << 32 | (unsigned)other; }

template <typename REAL>
__device__ inline void centre(const REAL* __restrict__ x, long long stride, long long rows, int features,
                              const double* __restrict__ mean, const double* __restrict__ factor, long long width,
                              float* __restrict__ out, float* __restrict__ squares) {
    const int lane = threadIdx.x % 32;
    const long long row = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= rows) return;
    double sum = 0.0;
    for (int f = lane; f < width; f += 32) {
        const float value = f < features ? (float)(((double)x[row * stride + f] - mean[f]) * factor[f]) : 0.0f;
        out[row * width + f] = value;
        sum += (double)value * value;
    }
    for (int mask = 16; mask > 0; mask /= 2) sum += __shfl_xor_sync(ALL, sum, mask);
    if (lane == 0) squares[row] = (float)sum;
}

extern "C" __global__ void __launch_bounds__(THREADS)
centred_f32(const float* x, long long stride, long long rows, int features, const double* mean, const double* factor,
            long long width, float* out, float* squares) {
    centre(x, stride, rows, features, mean, factor, width, out, squares);
}

extern "C" __global__ void __launch_bounds__(THREADS)
centred_f64(const double* x, long long stride, long long rows, int features, const double* mean, const double* factor,
            long long width, float* out, float* squares) {
    centre(x, stride, rows, features, mean, factor, width, out, squares);
}

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

// blockIdx.x: 128 rows from `first` on, whose lists are complete afterwards.
extern "C" __global__ void __launch_bounds__(THREADS)
nearest(const float* __restrict__ x, long long width, const float* __restrict__ squares, long long rows, long long first,
        Key* __restrict__ lists) {
    extern __shared__ __align__(16) unsigned char shared[];
    Key* const waiting = reinterpret_cast<Key*>(shared);
    float* const tiles = reinterpret_cast<float*>(waiting + QUERIES * WAITING);
    float* const farthest = tiles + STAGES * 2 * TILE;
    int* const count = reinterpret_cast<int*>(farthest + QUERIES);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, member = lane % 4;
    const int own_rows = warp / 2 * 32, own_columns = warp % 2 * 64;
    const long long query = first + (long long)blockIdx.x * QUERIES;
    const int steps = (int)((width + DEPTH - 1) / DEPTH);
    const long long stages = (rows + OTHERS - 1) / OTHERS * steps;

    for (int i = threadIdx.x; i < QUERIES; i += THREADS) {
        farthest[i] = __uint_as_float(0x7f800000);
        count[i] = 0;
    }
    for (int i = threadIdx.x; i < QUERIES * LIST; i += THREADS)
        if (query + i / LIST < rows) lists[query * LIST + i] = NOBODY;

    auto load = [&](long long stage) {
        if (stage < stages) {
            float* const tile = tiles + (int)(stage % STAGES) * 2 * TILE;
            const long long other = stage / steps * OTHERS;
            const int from = (int)(stage % steps) * DEPTH;
            for (int i = threadIdx.x; i < 2 * QUERIES * DEPTH / 4; i += THREADS) {
                const int half = i / (QUERIES * DEPTH / 4), at = i % (QUERIES * DEPTH / 4);
                const int row = at / (DEPTH / 4), column = at % (DEPTH / 4) * 4;
                const long long place = (half ? other : query) + row;
                const bool there = place < rows && from + column < width;
                copy(tile + half * TILE + row * STRIDE + column, there ? x + place * width + from + column : x, there);
            }
        }
        copies_begun();
    };
    // Others come in increasing order, so that one that is as far as the farthest of a full list does not belong there.
    auto merge = [&]() {
        for (int row = warp * 16; row < warp * 16 + 16; row++) {
            const int here = count[row];
            if (here == 0) continue;
            Key* const list = lists + (query + row) * LIST;
            const Key found = sorted(lane < here ? waiting[row * WAITING + lane] : NOBODY, lane);
            const Key kept = merged(list[lane], found, lane);
            list[lane] = kept;
            if (lane == 31) {
                const unsigned bits = (unsigned)(kept >> 32);
                farthest[row] = __uint_as_float(bits > 0x7f800000u ? 0x7f800000u : bits);
                count[row] = 0;
            }
        }
    };

    float sums[2][8][4] = {};
    for (int stage = 0; stage < STAGES - 1; stage++) load(stage);
    for (long long stage = 0; stage < stages; stage++) {
        copies_done<STAGES - 2>();
        __syncthreads();
        load(stage + STAGES - 1);
        const float* const tile = tiles + (int)(stage % STAGES) * 2 * TILE;
#pragma unroll
        for (int step = 0; step < DEPTH / 8; step++) {
            unsigned high[2][4], low[2][4];
#pragma unroll
            for (int m = 0; m < 2; m++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const int row = own_rows + 16 * m + group + i % 2 * 8;
                    split(tile[row * STRIDE + 8 * step + member + i / 2 * 4], high[m][i], low[m][i]);
                }
#pragma unroll
            for (int n = 0; n < 8; n++) {
                unsigned b_high[2], b_low[2];
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    const int row = own_columns + 8 * n + group;
                    split(tile[TILE + row * STRIDE + 8 * step + member + 4 * i], b_high[i], b_low[i]);
                }
#pragma unroll
                for (int m = 0; m < 2; m++) tensor(sums[m][n], high[m], b_low);
#pragma unroll
                for (int m = 0; m < 2; m++) tensor(sums[m][n], low[m], b_high);
#pragma unroll
                for (int m = 0; m < 2; m++) tensor(sums[m][n], high[m], b_high);
            }
        }
        if (stage % steps != steps - 1) continue;

        // All features are in: these are products with 128 others.
        const long long other = stage / steps * OTHERS + own_columns;
        float own[2][2], limit[2][2];
#pragma unroll
        for (int m = 0; m < 2; m++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int row = own_rows + 16 * m + 8 * half + group;
                own[m][half] = query + row < rows ? squares[query + row] : 0.0f;
                limit[m][half] = query + row < rows ? farthest[row] : -1.0f;
            }
        bool any = false;
#pragma unroll
        for (int n = 0; n < 8; n++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const long long place = other + 8 * n + 2 * member + i;
                const float theirs = place < rows ? squares[place] : __uint_as_float(0x7f800000);
#pragma unroll
                for (int m = 0; m < 2; m++)
#pragma unroll
                    for (int half = 0; half < 2; half++) {
                        const long long self = query + own_rows + 16 * m + 8 * half + group;
                        float& square = sums[m][n][2 * half + i];
                        square = fmaxf(own[m][half] + theirs - 2.0f * square, 0.0f);
                        if (place == self || place >= rows) square = __uint_as_float(0x7f800000);
                        any |= square < limit[m][half];
                    }
            }
        if (__syncthreads_or(any)) {
#pragma unroll
            for (int n = 0; n < 8; n++) {
                bool full = false;
#pragma unroll
                for (int m = 0; m < 2; m++)
#pragma unroll
                    for (int half = 0; half < 2; half++) {
                        const int row = own_rows + 16 * m + 8 * half + group;
#pragma unroll
                        for (int i = 0; i < 2; i++) {
                            const float square = sums[m][n][2 * half + i];
                            const bool near = square < farthest[row] && query + row < rows;
                            if (!near) continue;
                            const int at = atomicAdd(count + row, 1);
                            waiting[row * WAITING + at] = key(square, (int)(other + 8 * n + 2 * member + i));
                            full |= at + 1 > WAITING - STEP;
                        }
                    }
                if (__syncthreads_or(full)) {
                    merge();
                    __syncthreads();
                }
            }
        }
#pragma unroll
        for (int m = 0; m < 2; m++)
#pragma unroll
            for (int n = 0; n < 8; n++)
#pragma unroll
                for (int i = 0; i < 4; i++) sums[m][n][i] = 0.0f;
    }
    copies_done<0>();
    __syncthreads();
    merge();
}

// Of the LIST others of each row the nearest `kept`, by their true distances: a warp for each row.
extern "C" __global__ void __launch_bounds__(THREADS)
ranked(const float* __restrict__ x, long long width, long long rows, const Key* __restrict__ lists, int kept,
       int* __restrict__ others, float* __restrict__ squares) {
    const int lane = threadIdx.x % 32;
    const long long row = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= rows) return;
    Key own = lists[row * LIST + lane];
    for (int i = 0; i < LIST; i++) {
        const Key found = __shfl_sync(ALL, own, i);
        if (found == NOBODY) break;
        const int other = (int)(unsigned)found;
        float sum = 0.0f;
        for (long long f = lane; f < width; f += 32) {
            const float difference = x[row * width + f] - x[other * width + f];
            sum += difference * difference;
        }
        for (int mask = 16; mask > 0; mask /= 2) sum += __shfl_xor_sync(ALL, sum, mask);
        if (lane == i) own = key(sum, other);
    }
    own = sorted(own, lane);
    if (lane < kept) {
        others[row * kept + lane] = own == NOBODY ? -1 : (int)(unsigned)own;
        squares[row * kept + lane] = own == NOBODY ? __uint_as_float(0x7f800000) : __uint_as_float((unsigned)(own >> 32));
    }
}
