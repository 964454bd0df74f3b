// The nearest others of every row, by comparing all pairs.
//
//   centred   rows as they are compared: scaled, and counted from their mean
//   halved    the same in half precision, and how far they are from what they were
//   rough     the LIST nearest of each row, by one product of tensor cores of rows in half precision
//   ranked    those in the order of their true distances, and whether nobody who was left out can be nearer
//   nearest   the LIST nearest of the rows for which that is not sure, by |x|^2 + |y|^2 - 2 x y with three products

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

// The most that rounding to half precision takes from a row where its numbers are below the normal ones.
__device__ inline double subnormal(long long width) { return sqrt((double)width) * 0x1p-25; }

// Rows times `scale` in half precision, `deep` numbers each, what products with each start from, -|y|^2 / 2, and the length of what
// was rounded away. `worst`: its share of a row at most, but for `subnormal`. Rows from `rows` on fill the last block: they are
// zeros, and nobody's neighbours. A warp for each row.
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

// blockIdx.x: 256 rows from `first` on, whose lists are complete afterwards. Up to 128 features stay in shared memory.
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

// A neighbour: those that are nearer come first, and of those that are equally near the first. Distances are not negative.
__device__ inline Key key(float square, int other) { return (Key)__float_as_uint(square) << 32 | (unsigned)other; }

// What `ranked` has to know about rows in half precision to tell whether a list is sure.
struct Rounding {
    const float* starts;
    const float* losses;
    const float* worst;
    double scale;
    long long deep;
};

// Whether everybody outside of a list is farther than `square`, where `outside` is the highest score there.
//
// Let y be as near as that, at D. Then it is at most Y = |x| + D long, and with what was lost of x and y the rounded ones are at most
// B = D + |dx| + |dy| apart, where |dy| <= worst Y + subnormal. Its score is at least (|x|^2 - B^2) / 2 of the rounded x, but for
// what tensor cores cut off: they add 4 products or more to a sum at a time, and of each addend and the sum 2^-23 of the greatest
// of them, which is below Y^2. For 16 products that is below 3 2^-20 Y^2. If all that is above `outside`, there is no such y.
__device__ inline bool sure(const Rounding& rounding, long long width, long long row, double length, double square, float outside) {
    // The sums that make `square` are rounded too.
    const double distance = rounding.scale * sqrt(square * (1.0 + (width / 32 + 16) * 0x1p-22));
    const double least = subnormal(width), longest = rounding.scale * length * (1.0 + 0x1p-20) + distance + least;
    const double apart = distance + rounding.losses[row] + *rounding.worst * longest + least;
    const double cut = (rounding.deep / 16 + 1) * 0x6p-20 * longest * longest;
    return -2.0 * rounding.starts[row] - 2.0 * outside - cut > apart * apart;
}

// Of the LIST others of each row the nearest `kept`, by their true distances, and whether these are sure to be the nearest of all:
// a warp for each row. The rows are those of `queries`, if there are any, and then nobody asks whether it is sure.
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

// Others that a row meets in one step.
constexpr int STEP = 16;

}  // namespace single

// blockIdx.x: 128 of `count` rows, whose lists are complete afterwards.
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
    // Others come in increasing order, so that one that is as far as the farthest of a full list does not belong there.
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

        // All features are in: these are products with 128 others.
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
        // Where somebody's list is full of those who wait, the rest comes after the merge.
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

