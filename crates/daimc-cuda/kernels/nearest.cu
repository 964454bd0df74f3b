// The nearest neighbours of every row, by comparing all pairs.
//
//   centred   scales rows and subtracts their mean
//   halved    rounds these to half precision, with the length of the rounding error
//   rough     finds the LIST nearest of each row by one tensor core product in half precision
//   ranked    sorts these by their true distances, and tests whether any row outside of the list can be nearer
//   nearest   repeats the search where one can, by |x|^2 + |y|^2 - 2 x y with three products

#include "common.cuh"
#include "lists.cuh"
#include "rough.cuh"

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

extern "C" __global__ void __launch_bounds__(256)
centred_f32(const float* x, long long stride, long long rows, int features, const double* mean, const double* factor,
            long long width, float* out, float* squares) {
    centre(x, stride, rows, features, mean, factor, width, out, squares);
}

extern "C" __global__ void __launch_bounds__(256)
centred_f64(const double* x, long long stride, long long rows, int features, const double* mean, const double* factor,
            long long width, float* out, float* squares) {
    centre(x, stride, rows, features, mean, factor, width, out, squares);
}

// Bound on the length of the rounding error of a row from its numbers that are subnormal in half precision.
__device__ inline double subnormal(long long width) { return sqrt((double)width) * 0x1p-25; }

// Rounds rows times `scale` to half precision, `deep` numbers each. For each row y, `starts` has -|y|^2 / 2, the initial value of
// products with y, and `losses` the length of its rounding error. `worst` is the largest ratio of that length, minus `subnormal`, to
// |y|. Rows from `rows` on pad the last block: they are zero, and neighbours of no row. One warp per row.
extern "C" __global__ void __launch_bounds__(256)
halved(const float* __restrict__ x, long long width, long long rows, float scale, long long deep, Half* __restrict__ out,
       float* __restrict__ starts, float* __restrict__ losses, unsigned* __restrict__ worst) {
    const int lane = threadIdx.x % 32;
    const long long row = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    double square = 0.0, rounded = 0.0, lost = 0.0;
    for (long long f = lane; f < deep; f += 32) {
        const float value = row < rows && f < width ? x[row * width + f] * scale : 0.0f;
        const Half half = halved_value(value);
        const double whole = whole_value(half), difference = value - whole;
        out[row * deep + f] = half;
        square += (double)value * value;
        rounded += whole * whole;
        lost += difference * difference;
    }
    for (int mask = 16; mask > 0; mask /= 2) {
        square += __shfl_xor_sync(ALL, square, mask);
        rounded += __shfl_xor_sync(ALL, rounded, mask);
        lost += __shfl_xor_sync(ALL, lost, mask);
    }
    if (lane != 0) return;
    starts[row] = row < rows ? (float)(-0.5 * rounded) : -infinity();
    if (row >= rows) return;
    losses[row] = __double2float_ru(sqrt(lost));
    const double share = (sqrt(lost) - subnormal(width)) / sqrt(square);
    if (share > 0.0) atomicMax(worst, __float_as_uint(__double2float_ru(share)));
}

// Completes the lists of 256 rows per block, from `first` on. `rough_narrow` keeps up to 128 features in shared memory.
extern "C" __global__ void __launch_bounds__(half::THREADS, 2)
rough_narrow(const Half* x, long long width, const float* starts, long long rows, long long tiles, long long stride,
             long long first, Key* waiting, Key* lists) {
    half::search<true, 3>(x, width, starts, rows, tiles, stride, first, waiting, lists);
}

extern "C" __global__ void __launch_bounds__(half::THREADS, 2)
rough_wide(const Half* x, long long width, const float* starts, long long rows, long long tiles, long long stride,
           long long first, Key* waiting, Key* lists) {
    half::search<false, 2>(x, width, starts, rows, tiles, stride, first, waiting, lists);
}

// Sort key of a neighbour: by distance, then by number. Distances are not negative.
__device__ inline Key key(float square, int other) { return (Key)__float_as_uint(square) << 32 | (unsigned)other; }

// What `ranked` needs of the rows in half precision to test whether a list is complete.
struct Rounding {
    const float* starts;
    const float* losses;
    const float* worst;
    double scale;
    long long deep;
};

// Whether every row outside of a list is farther than `square`, where `outside` is the highest score outside.
//
// Let y be at a distance of at most D, the root of `square`. Then |y| <= Y = |x| + D, and the rounded x and y are at most
// B = D + |dx| + |dy| apart, where dx and dy are the rounding errors and |dy| <= worst Y + subnormal. The score of y is at least
// (|x|^2 - B^2) / 2, with the rounded x, minus the truncation error of tensor cores: they add 4 or more products to a sum at a time,
// and cut off 2^-23 of the greatest of them, which is below Y^2, from each addend and the sum. For 16 products that is below
// 3 2^-20 Y^2. If this bound is above `outside`, no such y exists outside of the list.
__device__ inline bool sure(const Rounding& rounding, long long width, long long row, double length, double square, float outside) {
    // The sum in `square` is rounded, too.
    const double distance = rounding.scale * sqrt(square * (1.0 + (width / 32 + 16) * 0x1p-22));
    const double least = subnormal(width), longest = rounding.scale * length * (1.0 + 0x1p-20) + distance + least;
    const double apart = distance + rounding.losses[row] + *rounding.worst * longest + least;
    const double cut = (rounding.deep / 16 + 1) * 0x6p-20 * longest * longest;
    return -2.0 * rounding.starts[row] - 2.0 * outside - cut > apart * apart;
}

// Writes the nearest `kept` of the LIST neighbours of each row by their true distances, and to `known` whether these are certainly the
// nearest of all. One warp per row. With `queries`, only these rows are processed, and `known` is not written.
extern "C" __global__ void __launch_bounds__(256)
ranked(const float* __restrict__ x, long long width, const float* __restrict__ lengths, long long rows,
       const int* __restrict__ queries, long long count, const Key* __restrict__ lists, int kept, const float* __restrict__ starts,
       const float* __restrict__ losses, const float* __restrict__ worst, double scale, long long deep, int* __restrict__ others,
       float* __restrict__ squares, int* __restrict__ known) {
    const int lane = threadIdx.x % 32;
    const long long place = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (place >= count) return;
    const long long row = queries ? queries[place] : place;
    Key own = lists[place * LIST + lane];
    const Key last = __shfl_sync(ALL, own, LIST - 1);
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
    const float square = own == NOBODY ? infinity() : __uint_as_float((unsigned)(own >> 32));
    if (lane < kept) {
        others[row * kept + lane] = own == NOBODY ? -1 : (int)(unsigned)own;
        squares[row * kept + lane] = square;
    }
    if (!queries && lane == kept - 1) {
        const Rounding rounding = {starts, losses, worst, scale, deep};
        known[row] = rows <= LIST || sure(rounding, width, row, sqrt((double)lengths[row]), square, half::score(last));
    }
}

namespace single {

constexpr int QUERIES = 128;
constexpr int OTHERS = 128;
constexpr int DEPTH = 16;
constexpr int STRIDE = DEPTH + 4;
constexpr int TILE = QUERIES * STRIDE;
constexpr int THREADS = 256;
constexpr int STAGES = 3;

// Candidates that a row can gain between two checks of its buffer.
constexpr int STEP = 16;

}  // namespace single

// Completes the lists of 128 of `count` rows per block.
extern "C" __global__ void __launch_bounds__(single::THREADS)
nearest(const float* __restrict__ x, long long width, const float* __restrict__ squares, long long rows,
        const int* __restrict__ queries, long long count, long long first, Key* __restrict__ lists) {
    using namespace single;
    extern __shared__ __align__(16) unsigned char shared[];
    Key* const waiting = reinterpret_cast<Key*>(shared);
    float* const tiles = reinterpret_cast<float*>(waiting + QUERIES * WAITING);
    float* const farthest = tiles + STAGES * 2 * TILE;
    int* const counts = reinterpret_cast<int*>(farthest + QUERIES);
    int* const own = counts + QUERIES;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, member = lane % 4;
    const int own_rows = warp / 2 * 32, own_columns = warp % 2 * 64;
    const long long place = first + (long long)blockIdx.x * QUERIES;
    const int steps = (int)((width + DEPTH - 1) / DEPTH);
    const long long stages = (rows + OTHERS - 1) / OTHERS * steps;

    for (int i = threadIdx.x; i < QUERIES; i += THREADS) {
        own[i] = place + i < count ? queries[place + i] : -1;
        farthest[i] = own[i] < 0 ? -1.0f : infinity();
        counts[i] = 0;
    }
    for (int i = threadIdx.x; i < QUERIES * LIST; i += THREADS)
        if (place + i / LIST < count) lists[place * LIST + i] = NOBODY;
    __syncthreads();

    auto load = [&](long long stage) {
        if (stage < stages) {
            float* const tile = tiles + (int)(stage % STAGES) * 2 * TILE;
            const long long other = stage / steps * OTHERS;
            const int from = (int)(stage % steps) * DEPTH;
            for (int i = threadIdx.x; i < 2 * QUERIES * DEPTH / 4; i += THREADS) {
                const int half = i / (QUERIES * DEPTH / 4), at = i % (QUERIES * DEPTH / 4);
                const int row = at / (DEPTH / 4), column = at % (DEPTH / 4) * 4;
                const long long number = half ? other + row : own[row];
                const bool there = number >= 0 && number < rows && from + column < width;
                copy(tile + half * TILE + row * STRIDE + column, there ? x + number * width + from + column : x, there);
            }
        }
        copies_begun();
    };
    // Others are visited in increasing order, so one that is as far as the last of a full list does not enter it.
    auto merge = [&]() {
        for (int row = warp * 16; row < warp * 16 + 16; row++) {
            const int here = counts[row];
            if (here == 0) continue;
            Key* const list = lists + (place + row) * LIST;
            const Key found = sorted(lane < here ? waiting[row * WAITING + lane] : NOBODY, lane);
            const Key kept = merged(list[lane], found, lane);
            list[lane] = kept;
            if (lane == 31) {
                const unsigned bits = (unsigned)(kept >> 32);
                farthest[row] = __uint_as_float(bits > 0x7f800000u ? 0x7f800000u : bits);
                counts[row] = 0;
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

        // The products with 128 others are complete: all features are summed.
        const long long other = stage / steps * OTHERS + own_columns;
        float length[2][2], limit[2][2];
        int self[2][2];
#pragma unroll
        for (int m = 0; m < 2; m++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int row = own_rows + 16 * m + 8 * half + group;
                self[m][half] = own[row];
                length[m][half] = own[row] < 0 ? 0.0f : squares[own[row]];
                limit[m][half] = farthest[row];
            }
        bool any = false;
#pragma unroll
        for (int n = 0; n < 8; n++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const long long number = other + 8 * n + 2 * member + i;
                const float theirs = number < rows ? squares[number] : infinity();
#pragma unroll
                for (int m = 0; m < 2; m++)
#pragma unroll
                    for (int half = 0; half < 2; half++) {
                        float& square = sums[m][n][2 * half + i];
                        square = fmaxf(length[m][half] + theirs - 2.0f * square, 0.0f);
                        if (number == self[m][half] || number >= rows) square = infinity();
                        any |= square < limit[m][half];
                    }
            }
        // If a buffer is full, the remaining candidates follow after the merge.
        for (int from = __syncthreads_or(any) ? 0 : 8; from < 8;) {
            bool full = false;
#pragma unroll
            for (int n = 0; n < 8; n++) {
                if (n < from || full) continue;
                from = n + 1;
#pragma unroll
                for (int m = 0; m < 2; m++)
#pragma unroll
                    for (int half = 0; half < 2; half++) {
                        const int row = own_rows + 16 * m + 8 * half + group;
#pragma unroll
                        for (int i = 0; i < 2; i++) {
                            const float square = sums[m][n][2 * half + i];
                            if (!(square < farthest[row])) continue;
                            const int at = atomicAdd(counts + row, 1);
                            waiting[row * WAITING + at] = key(square, (int)(other + 8 * n + 2 * member + i));
                            full |= at + 1 > WAITING - STEP;
                        }
                    }
                full = __syncthreads_or(full);
            }
            if (full) {
                merge();
                __syncthreads();
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

