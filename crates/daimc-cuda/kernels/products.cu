// The two products of a sweep over dense rows.
//
//   project   r_j = x_j U - o       for every row x_j, and 8 TILES columns of U at a time
//   gather    C = sum_j x_j v_j^T   over parts of the rows, which `add_parts` adds
//
// Compiled for each TILES and SPLIT, which is 0 for rows of doubles. Tensor cores compute the products on 16 x 8 x 8 tiles, from floats
// rounded to 11 bits. With SPLIT 3 a float is the sum of two of these, and three products of such parts leave an error in the last
// bits of a float.

#include "common.cuh"

#define FLOAT (SPLIT > 0)
#if FLOAT
#define REAL float
#else
#define REAL double
#endif
#define WARPS 8
#define STAGES 3
#define WIDTH (8 * TILES)

// Columns of X in one stage of `project`, which processes 128 rows.
constexpr int DEPTH = sizeof(REAL) == 4 ? 32 : 16;
constexpr int STEPS = DEPTH / 8;
constexpr int TILE = 16 * WARPS;
constexpr int VECTOR = 16 / sizeof(REAL);
constexpr int PARTS = SPLIT == 3 ? 2 : 1;

// Stride of rows in shared memory, without bank conflicts between the lanes of a warp.
constexpr int ROW_STRIDE = DEPTH + 4;

// Length of the basis of one stage.
constexpr int BASIS = STEPS * TILES * 32 * 2 * PARTS;

// Stages after which sums of products are added to totals. Tensor cores truncate their sums, while totals are rounded, so the sums are
// kept short: one stage, or some where factors are rounded anyway.
constexpr int TOGETHER = SPLIT == 1 ? 4 : 1;
__device__ inline bool flushes(int stage, int stages) { return stage % TOGETHER == TOGETHER - 1 || stage + 1 == stages; }

struct Accumulator {
#if FLOAT
    float sums[TILES][4] = {};
    float totals[TILES][4] = {};
    __device__ void flush() {
#pragma unroll
        for (int n = 0; n < TILES; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                totals[n][i] += sums[n][i];
                sums[n][i] = 0;
            }
    }
#else
    double totals[TILES][4] = {};
    __device__ void flush() {}
#endif
};

// The parts of four numbers of the left matrix.
struct Left {
#if FLOAT
    unsigned parts[PARTS][4];
    __device__ void set(int i, float value) {
        if (PARTS == 2)
            split(value, parts[0][i], parts[PARTS - 1][i]);
        else
            parts[0][i] = rounded(value);
    }
#else
    double parts[4];
    __device__ void set(int i, double value) { parts[i] = value; }
#endif
};

// The parts of two numbers of the right matrix.
struct Right {
#if FLOAT
    unsigned parts[PARTS][2];
    // From packed V: a number, or its two parts next to each other.
    __device__ void set(int i, const float* from) {
        if (PARTS == 2) {
            const uint2 both = *reinterpret_cast<const uint2*>(from);
            parts[0][i] = both.x;
            parts[PARTS - 1][i] = both.y;
        } else {
            parts[0][i] = __float_as_uint(*from);
        }
    }
    // From a basis in the layout that `lay_out` writes.
    __device__ void take(const float* from) {
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            const uint2 own = *reinterpret_cast<const uint2*>(from + 64 * part);
            parts[part][0] = own.x;
            parts[part][1] = own.y;
        }
    }
#else
    double parts[2];
    __device__ void set(int i, const double* from) { parts[i] = *from; }
    __device__ void take(const double* from) {
        const double2 own = *reinterpret_cast<const double2*>(from);
        parts[0] = own.x;
        parts[1] = own.y;
    }
#endif
};

__device__ inline void multiply(Accumulator& c, int n, const Left& a, const Right& b) {
#if FLOAT
    if (PARTS == 2) {
        tensor(c.sums[n], a.parts[0], b.parts[PARTS - 1]);
        tensor(c.sums[n], a.parts[PARTS - 1], b.parts[0]);
    }
    tensor(c.sums[n], a.parts[0], b.parts[0]);
#else
    tensor(c.totals[n], a.parts[0], b.parts[0]);
    tensor(c.totals[n], a.parts[2], b.parts[1]);
    tensor(c.totals[n] + 2, a.parts[1], b.parts[0]);
    tensor(c.totals[n] + 2, a.parts[3], b.parts[1]);
#endif
}

// Writes a basis, features x latent, in the layout that `project` reads: for each group of columns, 8 features at a time, for each tile
// and part two numbers per lane. blockIdx.y: the group; `size`: its length with one part per number.
extern "C" __global__ void __launch_bounds__(256)
lay_out(const double* __restrict__ basis, int features, int latent, int size, REAL* __restrict__ out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = i / 2 % 32;
    if (i >= size) return;
    const int feature = i / (64 * TILES) * 8 + lane % 4 + i % 2 * 4;
    const int k = (blockIdx.y * TILES + i / 64 % TILES) * 8 + lane / 4;
    const REAL value = feature < features && k < latent ? (REAL)basis[(size_t)feature * latent + k] : 0;
    REAL* const to = out + ((size_t)blockIdx.y * size + i / 64 * 64) * PARTS + i % 64;
#if FLOAT
    unsigned high, low;
    split(value, high, low);
    to[0] = __uint_as_float(PARTS == 2 ? high : rounded(value));
    if (PARTS == 2) to[64] = __uint_as_float(low);
#else
    to[0] = value;
#endif
}

// blockIdx.x: 128 rows; blockIdx.y: the group of columns of U. `instances` has the instance of each row (null: the row).
extern "C" __global__ void __launch_bounds__(32 * WARPS)
project(const REAL* __restrict__ x, long long stride, const int* __restrict__ instances, long long rows, int features,
        const REAL* __restrict__ basis, const double* __restrict__ offset, int latent, double* __restrict__ right, int add) {
    extern __shared__ __align__(16) unsigned char shared[];
    REAL* const tiles = reinterpret_cast<REAL*>(shared);
    REAL* const bases = tiles + STAGES * TILE * ROW_STRIDE;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, member = lane % 4;
    const long long first = (long long)blockIdx.x * TILE;
    const int stages = (features + DEPTH - 1) / DEPTH;
    basis += (size_t)blockIdx.y * stages * BASIS;

    auto load = [&](int stage) {
        if (stage < stages) {
            REAL* const tile = tiles + stage % STAGES * TILE * ROW_STRIDE;
            for (int i = threadIdx.x; i < TILE * DEPTH / VECTOR; i += 32 * WARPS) {
                const int row = i / (DEPTH / VECTOR), column = i % (DEPTH / VECTOR) * VECTOR;
                const bool there = first + row < rows && stage * DEPTH + column < stride;
                const REAL* from = there ? x + (first + row) * stride + stage * DEPTH + column : x;
                copy(tile + row * ROW_STRIDE + column, from, there);
            }
            REAL* const own = bases + stage % STAGES * BASIS;
            for (int i = threadIdx.x * VECTOR; i < BASIS; i += 32 * WARPS * VECTOR)
                copy(own + i, basis + (size_t)stage * BASIS + i, true);
        }
        copies_begun();
    };

    Accumulator sums;
    for (int stage = 0; stage < STAGES - 1; stage++) load(stage);
    for (int stage = 0; stage < stages; stage++) {
        copies_done<STAGES - 2>();
        __syncthreads();
        load(stage + STAGES - 1);
        const REAL* const tile = tiles + stage % STAGES * TILE * ROW_STRIDE + (16 * warp + group) * ROW_STRIDE + member;
        const REAL* const own = bases + stage % STAGES * BASIS + 2 * lane;
#pragma unroll
        for (int step = 0; step < STEPS; step++) {
            Left a;
#pragma unroll
            for (int i = 0; i < 4; i++) a.set(i, tile[(i % 2) * 8 * ROW_STRIDE + 8 * step + i / 2 * 4]);
#pragma unroll
            for (int n = 0; n < TILES; n++) {
                Right b;
                b.take(own + (step * TILES + n) * PARTS * 64);
                multiply(sums, n, a, b);
            }
        }
        if (flushes(stage, stages)) sums.flush();
    }
    copies_done<0>();

#pragma unroll
    for (int half = 0; half < 2; half++) {
        const long long row = first + 16 * warp + group + 8 * half;
        if (row >= rows) continue;
        const long long instance = instances ? instances[row] : row;
#pragma unroll
        for (int n = 0; n < TILES; n++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const int k = blockIdx.y * WIDTH + 8 * n + 2 * member + i;
                if (k >= latent) continue;
                double* const out = right + instance * latent + k;
                const double product = sums.totals[n][2 * half + i] - offset[k];
                *out = add ? *out + product : product;
            }
    }
}

// Rows of X in one stage of `gather`, in which each warp processes ACROSS times 16 features.
constexpr int ROWS = DEPTH / 2;
constexpr int DEEP = 4;
constexpr int ACROSS = 2;
constexpr int FEATURES = 16 * ACROSS * WARPS;
constexpr int TURNED_STRIDE = FEATURES + (FLOAT ? 8 : 4);
constexpr int WEIGHT_STRIDE = PARTS == 2 || !FLOAT ? WIDTH + 4 : WIDTH + (TILES % 2 ? 0 : 8);

// Length of a packed row of V.
constexpr int PACKED = WIDTH * PARTS;

// Packs rows of V for `gather`: padded, and split into the parts that tensor cores read. blockIdx.y: the group of columns of V.
extern "C" __global__ void pack(const double* __restrict__ v, long long instances, int latent, REAL* __restrict__ packed) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= instances * WIDTH) return;
    const long long instance = i / WIDTH;
    const int k = blockIdx.y * WIDTH + (int)(i % WIDTH);
    const REAL value = k < latent ? (REAL)v[instance * latent + k] : 0;
    REAL* const to = packed + ((size_t)instance * gridDim.y + blockIdx.y) * PACKED + i % WIDTH * PARTS;
#if FLOAT
    unsigned high, low;
    split(value, high, low);
    to[0] = __uint_as_float(PARTS == 2 ? high : rounded(value));
    if (PARTS == 2) to[PARTS - 1] = __uint_as_float(low);
#else
    to[0] = value;
#endif
}

// blockIdx.x: FEATURES features; blockIdx.y: the part of the rows; blockIdx.z: the group of columns of V.
extern "C" __global__ void __launch_bounds__(32 * WARPS)
gather(const REAL* __restrict__ x, long long stride, const int* __restrict__ instances, long long rows, int features,
       const REAL* __restrict__ packed, int latent, long long part, double* __restrict__ sums_of_parts) {
    extern __shared__ __align__(16) unsigned char shared[];
    REAL* const tiles = reinterpret_cast<REAL*>(shared);
    REAL* const weights = tiles + DEEP * ROWS * TURNED_STRIDE;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, member = lane % 4;
    const int first_feature = blockIdx.x * FEATURES, first_column = blockIdx.z * WIDTH;
    const long long first = (long long)blockIdx.y * part;
    const long long end = first + part < rows ? first + part : rows;
    const int stages = end > first ? (int)((end - first + ROWS - 1) / ROWS) : 0;

    auto load = [&](int stage) {
        if (stage < stages) {
            REAL* const tile = tiles + stage % DEEP * ROWS * TURNED_STRIDE;
            for (int i = threadIdx.x; i < FEATURES * ROWS / VECTOR; i += 32 * WARPS) {
                const int row = i / (FEATURES / VECTOR), column = i % (FEATURES / VECTOR) * VECTOR;
                const long long at = first + (long long)stage * ROWS + row;
                const bool there = at < end && first_feature + column < stride;
                copy(tile + row * TURNED_STRIDE + column, there ? x + at * stride + first_feature + column : x, there);
            }
            REAL* const own = weights + stage % DEEP * ROWS * WEIGHT_STRIDE * PARTS;
            for (int i = threadIdx.x; i < ROWS * PACKED / VECTOR; i += 32 * WARPS) {
                const int row = i / (PACKED / VECTOR), column = i % (PACKED / VECTOR) * VECTOR;
                const long long at = first + (long long)stage * ROWS + row;
                const long long instance = at < end ? (instances ? instances[at] : at) : 0;
                const REAL* const from = packed + ((size_t)instance * gridDim.z + blockIdx.z) * PACKED + column;
                copy(own + row * WEIGHT_STRIDE * PARTS + column, from, at < end);
            }
        }
        copies_begun();
    };

    Accumulator sums[ACROSS];
    for (int stage = 0; stage < DEEP - 1; stage++) load(stage);
    for (int stage = 0; stage < stages; stage++) {
        copies_done<DEEP - 2>();
        __syncthreads();
        load(stage + DEEP - 1);
        const REAL* const tile =
            tiles + stage % DEEP * ROWS * TURNED_STRIDE + member * TURNED_STRIDE + 16 * ACROSS * warp + group;
        const REAL* const own =
            weights + (stage % DEEP * ROWS * WEIGHT_STRIDE + member * WEIGHT_STRIDE + group) * PARTS;
#pragma unroll
        for (int step = 0; step < ROWS / 8; step++) {
            Left a[ACROSS];
#pragma unroll
            for (int m = 0; m < ACROSS; m++)
#pragma unroll
                for (int i = 0; i < 4; i++) a[m].set(i, tile[(8 * step + i / 2 * 4) * TURNED_STRIDE + 16 * m + i % 2 * 8]);
#pragma unroll
            for (int n = 0; n < TILES; n++) {
                Right b;
#pragma unroll
                for (int i = 0; i < 2; i++) b.set(i, own + ((8 * step + 4 * i) * WEIGHT_STRIDE + 8 * n) * PARTS);
#pragma unroll
                for (int m = 0; m < ACROSS; m++) multiply(sums[m], n, a[m], b);
            }
        }
        if (flushes(stage, stages))
#pragma unroll
            for (int m = 0; m < ACROSS; m++) sums[m].flush();
    }
    copies_done<0>();

    double* const out = sums_of_parts + (size_t)blockIdx.y * features * latent;
#pragma unroll
    for (int m = 0; m < ACROSS; m++) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int feature = first_feature + 16 * (ACROSS * warp + m) + group + 8 * half;
            if (feature >= features) continue;
#pragma unroll
            for (int n = 0; n < TILES; n++)
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    const int k = first_column + 8 * n + 2 * member + i;
                    if (k < latent) out[(size_t)feature * latent + k] = sums[m].totals[n][2 * half + i];
                }
        }
    }
}
