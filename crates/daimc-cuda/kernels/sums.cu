// Sums over instances, and products with sparse rows. Sums are computed in parts, which `add_parts` adds in order, so that every run
// gives the same result.

#include "common.cuh"

// out = sum of `count` parts of `size` numbers each. 32 x 8 threads for 32 numbers: each thread adds every eighth part.
extern "C" __global__ void __launch_bounds__(256)
add_parts(const double* __restrict__ parts, long long size, int count, double* __restrict__ out) {
    __shared__ double shared[8][32];
    const long long i = (long long)blockIdx.x * 32 + threadIdx.x;
    double sum = 0.0;
    if (i < size)
        for (int part = threadIdx.y; part < count; part += 8) sum += parts[(size_t)part * size + i];
    shared[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y > 0 || i >= size) return;
    for (int other = 1; other < 8; other++) sum += shared[other][threadIdx.x];
    out[i] = sum;
}

// Sums of V over the rows of a part, weighted by a factor of each row. blockIdx.x: the part. 256 threads, latent <= 256.
extern "C" __global__ void __launch_bounds__(256)
column_sums(const double* __restrict__ v, const int* __restrict__ instances, long long rows, const double* __restrict__ factors,
            int latent, long long part, double* __restrict__ sums_of_parts) {
    __shared__ double shared[256];
    const int phases = 256 / latent, k = threadIdx.x % latent, phase = threadIdx.x / latent;
    const long long first = (long long)blockIdx.x * part, end = first + part < rows ? first + part : rows;
    double sum = 0.0;
    if (phase < phases)
        for (long long row = first + phase; row < end; row += phases) {
            const long long instance = instances ? instances[row] : row;
            const double value = v[instance * latent + k];
            sum += factors ? factors[row] * value : value;
        }
    shared[threadIdx.x] = sum;
    __syncthreads();
    if (phase == 0) {
        for (int other = 1; other < phases; other++) sum += shared[other * latent + k];
        sums_of_parts[(size_t)blockIdx.x * latent + k] = sum;
    }
}

// Groups of eight columns in a square of v v^T.
constexpr int GROUPS = 4;

// Adds v v^T of every eighth group of four rows to a square of 32 x 32 numbers, several groups at a time; for a square on the diagonal
// only the lower half. `left` and `right` are the first columns of the square's rows and columns.
template <bool DIAGONAL>
__device__ inline void add_square(const double* __restrict__ v, const int* __restrict__ instances, long long first, long long end,
                                  int latent, int left, int right, double (&sums)[GROUPS][GROUPS][2], double (&columns)[GROUPS]) {
    constexpr int TOGETHER = DIAGONAL ? 4 : 2;
    const int lane = threadIdx.x % 32, group = lane / 4, member = lane % 4;
    for (long long from = first + 4 * (threadIdx.x / 32); from < end; from += 32 * TOGETHER) {
        double a[TOGETHER][GROUPS], b[TOGETHER][GROUPS];
#pragma unroll
        for (int t = 0; t < TOGETHER; t++) {
            const long long at = from + 32 * t + member;
            const double* const row = at < end ? v + (instances ? (long long)instances[at] : at) * latent : nullptr;
#pragma unroll
            for (int g = 0; g < GROUPS; g++) {
                const int k = left + 8 * g + group, l = right + 8 * g + group;
                a[t][g] = row && k < latent ? row[k] : 0;
                b[t][g] = DIAGONAL ? a[t][g] : row && l < latent ? row[l] : 0;
            }
        }
#pragma unroll
        for (int t = 0; t < TOGETHER; t++)
#pragma unroll
            for (int g = 0; g < GROUPS; g++) {
                columns[g] += a[t][g];
#pragma unroll
                for (int h = 0; h < (DIAGONAL ? g + 1 : GROUPS); h++)
                    if (left + 8 * g < latent && right + 8 * h < latent) tensor(sums[g][h], a[t][g], b[t][h]);
            }
    }
}

// Sums of v v^T, then of v, over the rows of a part, by tensor cores: latent^2 numbers, then `latent`. blockIdx.y: the part;
// blockIdx.x: the square of 32 x 32 numbers, in the order (0, 0), (1, 0), (1, 1), (2, 0) ...
extern "C" __global__ void __launch_bounds__(256, 2)
gram_sums(const double* __restrict__ v, const int* __restrict__ instances, long long rows, int latent, long long part,
          double* __restrict__ sums_of_parts) {
    __shared__ double shared[32 * 32], of_warps[8][32];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, member = lane % 4;
    int i = 0, j = blockIdx.x;
    while (j > i) j -= ++i;
    const long long first = (long long)blockIdx.y * part, end = first + part < rows ? first + part : rows;
    double sums[GROUPS][GROUPS][2] = {}, columns[GROUPS] = {};
    if (i == j)
        add_square<true>(v, instances, first, end, latent, 32 * i, 32 * j, sums, columns);
    else
        add_square<false>(v, instances, first, end, latent, 32 * i, 32 * j, sums, columns);
#pragma unroll
    for (int g = 0; g < GROUPS; g++) {
        columns[g] += __shfl_xor_sync(0xffffffffu, columns[g], 1);
        columns[g] += __shfl_xor_sync(0xffffffffu, columns[g], 2);
        if (member == 0) of_warps[warp][8 * g + group] = columns[g];
    }
    for (int other = 0; other < 8; other++) {
        if (warp == other)
#pragma unroll
            for (int a = 0; a < GROUPS; a++)
#pragma unroll
                for (int b = 0; b < GROUPS; b++)
#pragma unroll
                    for (int c = 0; c < 2; c++) {
                        double& own = shared[(8 * a + group) * 32 + 8 * b + 2 * member + c];
                        own = other == 0 ? sums[a][b][c] : own + sums[a][b][c];
                    }
        __syncthreads();
    }
    double* const out = sums_of_parts + (size_t)blockIdx.y * (latent + 1) * latent;
    for (int at = threadIdx.x; at < 32 * 32; at += 256) {
        const int k = 32 * i + at / 32, l = 32 * j + at % 32;
        if (k >= latent || l >= latent || l / 8 > k / 8) continue;
        out[k * latent + l] = shared[at];
        out[l * latent + k] = shared[at];
    }
    if (i != j || warp > 0 || 32 * i + lane >= latent) return;
    double sum = 0;
    for (int other = 0; other < 8; other++) sum += of_warps[other][lane];
    out[latent * latent + 32 * i + lane] = sum;
}

// r_j = f_j (x_j U - o) for sparse rows, one warp per row. U has at most 32 CHUNKS columns.
template <typename REAL, int CHUNKS>
__device__ inline void project_sparse(const long long* __restrict__ offsets, const int* __restrict__ columns,
                                      const REAL* __restrict__ values, const int* __restrict__ instances, long long rows,
                                      const double* __restrict__ basis, const double* __restrict__ offset,
                                      const double* __restrict__ factors, int latent, double* __restrict__ right, int add) {
    const int lane = threadIdx.x % 32;
    const long long row = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= rows) return;
    double sums[CHUNKS] = {};
    for (long long i = offsets[row]; i < offsets[row + 1]; i++) {
        const double value = values[i];
        const double* const u = basis + (size_t)columns[i] * latent;
#pragma unroll
        for (int c = 0; c < CHUNKS; c++)
            if (32 * c + lane < latent) sums[c] += value * u[32 * c + lane];
    }
    const long long instance = instances ? instances[row] : row;
    const double own = factors ? factors[row] : 1.0;
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
        const int k = 32 * c + lane;
        if (k >= latent) continue;
        double* const out = right + instance * latent + k;
        const double product = own * (sums[c] - offset[k]);
        *out = add ? *out + product : product;
    }
}

// Sums of x (f v)^T over stretches of the entries of one feature, one warp per stretch. Entries are sorted by feature.
template <typename REAL, int CHUNKS>
__device__ inline void gather_sparse(const long long* __restrict__ stretches, long long count, const int* __restrict__ entry_rows,
                                     const REAL* __restrict__ values, const int* __restrict__ instances,
                                     const double* __restrict__ v, const double* __restrict__ factors, int latent,
                                     double* __restrict__ sums_of_stretches) {
    const int lane = threadIdx.x % 32;
    const long long stretch = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (stretch >= count) return;
    double sums[CHUNKS] = {};
    for (long long i = stretches[stretch]; i < stretches[stretch + 1]; i++) {
        const int row = entry_rows[i];
        const double value = (factors ? factors[row] : 1.0) * (double)values[i];
        const double* const own = v + (instances ? (long long)instances[row] : row) * latent;
#pragma unroll
        for (int c = 0; c < CHUNKS; c++)
            if (32 * c + lane < latent) sums[c] += value * own[32 * c + lane];
    }
#pragma unroll
    for (int c = 0; c < CHUNKS; c++)
        if (32 * c + lane < latent) sums_of_stretches[stretch * latent + 32 * c + lane] = sums[c];
}

#define SPARSE(NAME, REAL, CHUNKS)                                                                                               \
    extern "C" __global__ void __launch_bounds__(256) project_sparse_##NAME(                                                     \
        const long long* offsets, const int* columns, const REAL* values, const int* instances, long long rows,                  \
        const double* basis, const double* offset, const double* factors, int latent, double* right, int add) {                  \
        project_sparse<REAL, CHUNKS>(offsets, columns, values, instances, rows, basis, offset, factors, latent, right, add);     \
    }                                                                                                                            \
    extern "C" __global__ void __launch_bounds__(256) gather_sparse_##NAME(                                                      \
        const long long* stretches, long long count, const int* entry_rows, const REAL* values, const int* instances,            \
        const double* v, const double* factors, int latent, double* sums) {                                                      \
        gather_sparse<REAL, CHUNKS>(stretches, count, entry_rows, values, instances, v, factors, latent, sums);                  \
    }
SPARSE(f32_1, float, 1)
SPARSE(f32_8, float, 8)
SPARSE(f64_1, double, 1)
SPARSE(f64_8, double, 8)

// Adds the sums of the stretches of each feature f: firsts[f] to firsts[f + 1].
extern "C" __global__ void add_stretches(const double* __restrict__ sums, const int* __restrict__ firsts, int features, int latent,
                                         double* __restrict__ out) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= (long long)features * latent) return;
    const int feature = (int)(i / latent), k = (int)(i % latent);
    double sum = 0.0;
    for (long long stretch = firsts[feature]; stretch < firsts[feature + 1]; stretch++) sum += sums[stretch * latent + k];
    out[i] = sum;
}
