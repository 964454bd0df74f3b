// Rows that another library has stored in GPU memory: one warp per row, 8 per block.

// Copies the rows of a list, or all; copies begin at multiples of `to_stride` and are padded with zeros. Given terms m, c and mu of
// each feature, x becomes (x - m) c f - mu, rounded as on the CPU, which does not fuse products and sums.
template <typename REAL>
__device__ inline void take(const REAL* __restrict__ from, long long stride, const unsigned* __restrict__ rows, long long count,
                            int features, const double* __restrict__ terms, const double* __restrict__ factors,
                            REAL* __restrict__ to, int to_stride) {
    const long long row = (long long)blockIdx.x * 8 + threadIdx.x / 32;
    if (row >= count) return;
    const REAL* const own = from + (rows ? (long long)rows[row] : row) * stride;
    for (int f = threadIdx.x % 32; f < to_stride; f += 32) {
        REAL value = f < features ? own[f] : REAL(0);
        if (terms && f < features) {
            const double m = terms[3 * f], c = terms[3 * f + 1], mu = terms[3 * f + 2];
            const double scaled = c == 0.0 ? 0.0 : __dmul_rn(__dsub_rn((double)value, m), c);
            value = (REAL)__dsub_rn(__dmul_rn(scaled, factors[row]), mu);
        }
        to[row * to_stride + f] = value;
    }
}

// Counts the values of each row that are NaN, or infinite.
template <typename REAL>
__device__ inline void count(const REAL* __restrict__ from, long long stride, long long rows, int features, int infinite,
                             unsigned* __restrict__ out) {
    const long long row = (long long)blockIdx.x * 8 + threadIdx.x / 32;
    if (row >= rows) return;
    unsigned found = 0;
    for (int f = threadIdx.x % 32; f < features; f += 32) {
        const REAL value = from[row * stride + f];
        found += infinite ? isinf(value) : isnan(value);
    }
    for (int other = 16; other > 0; other /= 2) found += __shfl_xor_sync(0xffffffffu, found, other);
    if (threadIdx.x % 32 == 0) out[row] = found;
}

#define STORED(NAME, REAL)                                                                                                     \
    extern "C" __global__ void __launch_bounds__(256)                                                                          \
        take_##NAME(const REAL* from, long long stride, const unsigned* rows, long long count, int features,                   \
                    const double* terms, const double* factors, REAL* to, int to_stride) {                                     \
        take<REAL>(from, stride, rows, count, features, terms, factors, to, to_stride);                                        \
    }                                                                                                                          \
    extern "C" __global__ void __launch_bounds__(256)                                                                          \
        count_##NAME(const REAL* from, long long stride, long long rows, int features, int infinite, unsigned* out) {          \
        count<REAL>(from, stride, rows, features, infinite, out);                                                              \
    }
STORED(f32, float)
STORED(f64, double)
