// Coordinate descent on rows of V in single precision: minimises v^T G v / 2 - r^T v subject to v >= 0.
//
// `lanes` threads work on a row. Each holds 8 tiles / lanes entries of its gradient, divided by G_kk: number e of thread l is entry
// e lanes + l. v is in shared memory.

#ifndef DESCENT_CUH
#define DESCENT_CUH

#define ALL 0xffffffffu

__device__ inline float4 four(const float* from) { return *reinterpret_cast<const float4*>(from); }

// Layout of the table of a presence pattern, for WIDTH = 8 tiles columns of V. H is G with row k divided by G_kk, or zero where entry k
// takes no part.
//
//   [WIDTH / 4][WIDTH][4]   number [a][l][c] is H of (l, 4 a + c)
//   [tiles][8][8]           its squares on the diagonal: number [n][c][d] is H of (8 n + d, 8 n + c)
//   [WIDTH]                 steps 1/G_kk, or 0
//   [WIDTH]                 offsets
template <int tiles>
struct Table {
    static constexpr int WIDTH = 8 * tiles;
    static constexpr int SQUARES = WIDTH * WIDTH;
    static constexpr int STEPS = SQUARES + 8 * WIDTH;
    static constexpr int OFFSETS = STEPS + WIDTH;
    static constexpr int SIZE = OFFSETS + WIDTH;
};

// Runs `passes` passes over the entries of v. On entry, `gradient` is that of v = 0. All threads of a warp take part.
template <int lanes, int tiles, int unrolled>
__device__ inline void descend(const float* table, float* v, float (&gradient)[8 * tiles / lanes], int latent, int passes) {
    constexpr int ENTRIES = 8 * tiles / lanes, TOGETHER = 8 / lanes;
    const int entry = threadIdx.x % lanes;
    // Updates the gradient after entries k to k + 3 have decreased by `fall`.
    const auto follow = [&](int k, const float* fall) {
#pragma unroll
        for (int e = 0; e < ENTRIES; e++) {
            const float4 with = four(table + (k * tiles * 8 + 4 * (e * lanes + entry)));
            gradient[e] += with.x * fall[0];
            gradient[e] += with.y * fall[1];
            gradient[e] += with.z * fall[2];
            gradient[e] += with.w * fall[3];
        }
    };
    // Few loads at a time, because registers are scarce.
#pragma unroll 2
    for (int k = 0; k < 8 * tiles; k += 4) {
        const float4 begin = four(v + k);
        const float fall[4] = {-begin.x, -begin.y, -begin.z, -begin.w};
        follow(k, fall);
    }
#pragma unroll 1
    for (int pass = 0; pass < passes; pass++)
        // Eight entries at a time: all threads of a row compute their new values.
#pragma unroll unrolled
        for (int n = 0; n < tiles; n++) {
            if (8 * n >= latent) continue;
            float own[TOGETHER], g[8], fall[8];
#pragma unroll
            for (int other = 0; other < tiles; other++)
                if (other == n)
#pragma unroll
                    for (int j = 0; j < TOGETHER; j++) own[j] = gradient[other * TOGETHER + j];
#pragma unroll
            for (int c = 0; c < 8; c++) g[c] = __shfl_sync(ALL, own[c / lanes], c % lanes, lanes);
            const float4 low = four(v + 8 * n), high = four(v + 8 * n + 4);
            const float old[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
            for (int c = 0; c < 8; c++) {
                fall[c] = fminf(-g[c], old[c]);
                const float* const square = table + Table<tiles>::SQUARES + (8 * n + c) * 8;
                const float4 left = four(square), right = four(square + 4);
                const float with[8] = {left.x, left.y, left.z, left.w, right.x, right.y, right.z, right.w};
#pragma unroll
                for (int d = c + 1; d < 8; d++) g[d] += with[d] * fall[c];
            }
            follow(8 * n, fall);
            follow(8 * n + 4, fall + 4);
            __syncwarp();
            if (entry == 0) {
                float4* const to = reinterpret_cast<float4*>(v + 8 * n);
                to[0] = make_float4(old[0] - fall[0], old[1] - fall[1], old[2] - fall[2], old[3] - fall[3]);
                to[1] = make_float4(old[4] - fall[4], old[5] - fall[5], old[6] - fall[6], old[7] - fall[7]);
            }
            __syncwarp();
        }
}

#endif
