// Rows with missing cells. The loss counts observed cells only. It is majorised by the loss of completed rows, whose missing cells hold
// the model's prediction u_f v_j, so that with x_f the value stored in the cell
//
//   r_j += sum_f u_f (u_f v_j - x_f),   and with the new v_j   C_f += (u_f v_j - x_f) v_j
//
// V solved to optimality is optimal for the observed cells, with a Gram matrix of each row's own. The features of all views with missing
// cells are numbered consecutively, and so are the rows of `basis`. A warp works on a row, or on a stretch of the cells of one feature;
// V has at most 32 CHUNKS columns.

#include "constants.cuh"

#define ALL 0xffffffffu

__device__ inline double summed(double value) {
    for (int mask = 16; mask > 0; mask /= 2) value += __shfl_xor_sync(ALL, value, mask);
    return value;
}

template <int CHUNKS>
struct Row {
    double numbers[CHUNKS];
    __device__ void load(const double* from, int lane, int latent) {
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) numbers[c] = 32 * c + lane < latent ? from[32 * c + lane] : 0.0;
    }
    __device__ double dot(const Row& other) const {
        double sum = 0.0;
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) sum += numbers[c] * other.numbers[c];
        return summed(sum);
    }
    __device__ void add(double factor, const Row& other) {
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) numbers[c] += factor * other.numbers[c];
    }
};

// r += made sum_f u_f (u_f v) - stood sum_f u_f x_f, where v is multiplied by a scale.
template <int CHUNKS>
__device__ inline void pull(const int* __restrict__ instances, const long long* __restrict__ offsets, long long rows,
                            const int* __restrict__ features, const double* __restrict__ stored, const double* __restrict__ basis,
                            const double* __restrict__ v, const double* __restrict__ scale, int latent, double made, double stood,
                            double* __restrict__ right) {
    const int lane = threadIdx.x % 32;
    const long long row = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= rows) return;
    const long long at = (long long)instances[row] * latent;
    Row<CHUNKS> own, factors, sums, u;
    own.load(v + at, lane, latent);
    factors.load(scale, lane, latent);
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) own.numbers[c] *= factors.numbers[c];
    sums.load(right + at, lane, latent);
    for (long long i = offsets[row]; i < offsets[row + 1]; i++) {
        u.load(basis + (long long)features[i] * latent, lane, latent);
        sums.add(made * u.dot(own) - stood * stored[i], u);
    }
#pragma unroll
    for (int c = 0; c < CHUNKS; c++)
        if (32 * c + lane < latent) right[at + 32 * c + lane] = sums.numbers[c];
}

// Sums (u v - x) v over each stretch of the cells of a feature, followed by the sum of (u v)^2.
template <int CHUNKS>
__device__ inline void push(const long long* __restrict__ stretches, long long count, const int* __restrict__ stretch_features,
                            const int* __restrict__ instances, const int* __restrict__ cell_rows,
                            const double* __restrict__ stored, const double* __restrict__ basis, const double* __restrict__ v,
                            int latent, double* __restrict__ out) {
    const int lane = threadIdx.x % 32;
    const long long stretch = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (stretch >= count) return;
    Row<CHUNKS> u, own, sums = {};
    u.load(basis + (long long)stretch_features[stretch] * latent, lane, latent);
    double square = 0.0;
    for (long long i = stretches[stretch]; i < stretches[stretch + 1]; i++) {
        own.load(v + (long long)instances[cell_rows[i]] * latent, lane, latent);
        const double made = u.dot(own);
        square += made * made;
        sums.add(made - stored[i], own);
    }
    double* const to = out + stretch * (latent + 1);
#pragma unroll
    for (int c = 0; c < CHUNKS; c++)
        if (32 * c + lane < latent) to[32 * c + lane] = sums.numbers[c];
    if (lane == 0) to[latent] = square;
}

constexpr double LOST = SMALLEST_REMAINDER;
constexpr double SMALLEST = SMALLEST_DIAGONAL;

// Solves rows to optimality, starting from zero. `views` has the first feature of each view and the one after its last, or twice -1 if
// no cell is missing; `shown` is 1 for each pattern and view of it, and else 0. `scratch` holds one Gram matrix per warp.
template <int CHUNKS>
__device__ inline void solve(const int* __restrict__ instances, const long long* __restrict__ offsets, long long rows,
                             const int* __restrict__ features, const double* __restrict__ basis,
                             const double* __restrict__ view_grams, const int* __restrict__ views, int view_count,
                             const int* __restrict__ shown, const int* __restrict__ patterns, const double* __restrict__ right,
                             int latent, int passes, double tolerance, double relaxation, double* scratch, double* __restrict__ v) {
    const int lane = threadIdx.x % 32, size = latent * latent;
    const long long warp = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / 32, warps = (long long)gridDim.x * blockDim.x / 32;
    double* const gram = scratch + warp * size;
    for (long long row = warp; row < rows; row += warps) {
        const long long instance = instances[row], first = offsets[row], end = offsets[row + 1];
        const int* const seen = shown + (patterns ? (long long)patterns[instance] * view_count : 0);
        for (int at = lane; at < size; at += 32) {
            double whole = 0.0;
            for (int view = 0; view < view_count; view++)
                if (seen[view]) whole += view_grams[(long long)view * size + at];
            double left = whole;
            for (long long i = first; i < end; i++) {
                const double* const u = basis + (long long)features[i] * latent;
                left -= u[at / latent] * u[at % latent];
            }
            gram[at] = left;
        }
        __syncwarp();
        bool lost = false;
        for (int k = lane; k < latent; k += 32) {
            double whole = 0.0;
            for (int view = 0; view < view_count; view++)
                if (seen[view]) whole += view_grams[(long long)view * size + k * latent + k];
            lost |= gram[k * latent + k] < LOST * whole;
        }
        if (__any_sync(ALL, lost)) {
            for (int at = lane; at < size; at += 32) {
                double sum = 0.0;
                for (int view = 0; view < view_count; view++) {
                    if (!seen[view]) continue;
                    const int from = views[2 * view], to = views[2 * view + 1];
                    long long hole = first;
                    while (hole < end && features[hole] < from) hole++;
                    if (from < 0 || hole == end || features[hole] >= to) {
                        sum += view_grams[(long long)view * size + at];
                        continue;
                    }
                    for (int f = from; f < to; f++) {
                        if (hole < end && features[hole] == f) {
                            hole++;
                            continue;
                        }
                        const double* const u = basis + (long long)f * latent;
                        sum += u[at / latent] * u[at % latent];
                    }
                }
                gram[at] = sum;
            }
            __syncwarp();
        }
        Row<CHUNKS> own = {}, gradient;
        gradient.load(right + instance * latent, lane, latent);
        for (int pass = 0; pass < passes; pass++) {
            double change = 0.0, largest = 0.0;
#pragma unroll
            for (int c = 0; c < CHUNKS; c++)
                for (int owner = 0; owner < 32 && 32 * c + owner < latent; owner++) {
                    const int k = 32 * c + owner;
                    const double diagonal = gram[k * latent + k];
                    const double moved = diagonal < SMALLEST
                                             ? own.numbers[c]
                                             : fmax(own.numbers[c] + gradient.numbers[c] * (relaxation / diagonal), 0.0);
                    const double step = __shfl_sync(ALL, moved - own.numbers[c], owner);
                    if (lane == owner) {
                        own.numbers[c] = moved;
                        change = fmax(change, fabs(step));
                        largest = fmax(largest, moved);
                    }
                    Row<CHUNKS> g;
                    g.load(gram + (long long)k * latent, lane, latent);
                    gradient.add(-step, g);
                }
            for (int mask = 16; mask > 0; mask /= 2) {
                change = fmax(change, __shfl_xor_sync(ALL, change, mask));
                largest = fmax(largest, __shfl_xor_sync(ALL, largest, mask));
            }
            if (!(change > tolerance * largest)) break;
        }
#pragma unroll
        for (int c = 0; c < CHUNKS; c++)
            if (32 * c + lane < latent) v[instance * latent + 32 * c + lane] = own.numbers[c];
        __syncwarp();
    }
}

#define HOLES(NAME, CHUNKS)                                                                                                      \
    extern "C" __global__ void __launch_bounds__(128) pull_##NAME(                                                               \
        const int* instances, const long long* offsets, long long rows, const int* features, const double* stored,               \
        const double* basis, const double* v, const double* scale, int latent, double made, double stood, double* right) {       \
        pull<CHUNKS>(instances, offsets, rows, features, stored, basis, v, scale, latent, made, stood, right);                   \
    }                                                                                                                            \
    extern "C" __global__ void __launch_bounds__(128) push_##NAME(                                                               \
        const long long* stretches, long long count, const int* stretch_features, const int* instances, const int* cell_rows,    \
        const double* stored, const double* basis, const double* v, int latent, double* out) {                                   \
        push<CHUNKS>(stretches, count, stretch_features, instances, cell_rows, stored, basis, v, latent, out);                   \
    }                                                                                                                            \
    extern "C" __global__ void __launch_bounds__(128) settle_##NAME(                                                             \
        const int* instances, const long long* offsets, long long rows, const int* features, const double* basis,                \
        const double* view_grams, const int* views, int view_count, const int* shown, const int* patterns, const double* right,  \
        int latent, int passes, double tolerance, double relaxation, double* scratch, double* v) {                               \
        solve<CHUNKS>(instances, offsets, rows, features, basis, view_grams, views, view_count, shown, patterns, right, latent,  \
                      passes, tolerance, relaxation, scratch, v);                                                                \
    }
HOLES(1, 1)
HOLES(8, 8)
