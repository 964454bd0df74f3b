// Products of blocks of vectors with the matrix S = R (A + t 1 1^T) R, where A is sparse and symmetric and R is diagonal.
//
//   root_sums   sums of R x over parts of the rows, which `add_parts` adds
//   times       y = a S x + b x + c y
//
// A row of x or y has `width` numbers. `lanes` threads work on a row, each on every lanes-th number; lanes divides 256.

// blockIdx.x: the part of the rows.
extern "C" __global__ void __launch_bounds__(256)
root_sums(const float* __restrict__ x, const double* __restrict__ roots, long long rows, int width, int lanes, long long part,
          double* __restrict__ sums_of_parts) {
    __shared__ double shared[256];
    const int lane = threadIdx.x % lanes, place = threadIdx.x / lanes, places = 256 / lanes;
    const long long first = (long long)blockIdx.x * part, end = first + part < rows ? first + part : rows;
    for (int from = 0; from < width; from += lanes) {
        const int k = from + lane;
        double sum = 0.0;
        if (k < width)
            for (long long row = first + place; row < end; row += places) sum += roots[row] * (double)x[row * width + k];
        shared[threadIdx.x] = sum;
        __syncthreads();
        if (place == 0 && k < width) {
            for (int other = 1; other < places; other++) sum += shared[other * lanes + lane];
            sums_of_parts[(size_t)blockIdx.x * width + k] = sum;
        }
        __syncthreads();
    }
}

// blockIdx.x: 256 / lanes rows. The entries of row i are at offsets[i] .. offsets[i + 1]. `sums` has the sums of R x over all rows.
extern "C" __global__ void __launch_bounds__(256)
times(const long long* __restrict__ offsets, const int* __restrict__ columns, const float* __restrict__ weights,
      const double* __restrict__ roots, const double* __restrict__ sums, double background, long long rows, int width, int lanes,
      const float* __restrict__ x, double a, double b, double c, float* __restrict__ y) {
    const long long row = ((long long)blockIdx.x * 256 + threadIdx.x) / lanes;
    if (row >= rows) return;
    const long long first = offsets[row], end = offsets[row + 1];
    for (int k = threadIdx.x % lanes; k < width; k += lanes) {
        double sum = 0.0;
        if (a != 0.0) {
            sum = background * sums[k];
            for (long long at = first; at < end; at++) {
                const long long other = columns[at];
                sum += (double)weights[at] * roots[other] * (double)x[other * width + k];
            }
        }
        const double kept = c == 0.0 ? 0.0 : c * (double)y[row * width + k];
        y[row * width + k] = (float)(a * roots[row] * sum + b * (double)x[row * width + k] + kept);
    }
}
