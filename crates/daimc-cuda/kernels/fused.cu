// A whole sweep over dense rows of floats, which are read once: r_j = x_j U - o, the V step, and C = sum_j x_j v_j^T.
//
// Compiled for each SPLIT (3: floats as sums of two parts, 1: floats rounded to 11 bits), TILES, GROUPS and UNITS, with
//
//   WIDTH = 8 TILES                columns of V, at least `latent`
//   ROWS = 16 GROUPS               rows of a tile, which a block keeps in shared memory while it works on it; GROUPS is 1, 2, 4 or 8
//   256 UNITS / GROUPS             columns of X, padding included, at most
//
// Launch: 256 threads and any number of blocks. Block b processes tiles b, b + blocks, ..., so results depend on the number of
// blocks but not on the run. Fastest are one block per multiprocessor, two with UNITS 1, and no more blocks than tiles.
// Bytes of shared memory: 4 (12288 UNITS + 24 BUFFERS (128 + ROWS) + WIDTH^2 + 11 WIDTH), with BUFFERS = 2 if GROUPS is 1 and 1
// otherwise.
//
// Warps run independently, so that tensor cores stay busy during V steps. The warps that share the columns of 16 rows form a team,
// which multiplies its rows by U, performs their V step and multiplies them by V. With GROUPS 1 all warps share the columns: the two
// halves are then teams that alternate in the V step, and multiply tile i + 1 by U before they multiply tile i by V.
//
// Columns of X are in units of 32, in the order of the basis. Their location is given in one of two ways:
//
//   `columns` null   one view with a row for each instance: row j begins at x + j stride, where `stride` is a multiple of 4, and its
//                    first `width` numbers, a multiple of 4 and at most `stride`, are read. units = ceil(width / 32).
//   otherwise        any views, each padded to a multiple of 16 columns: two descriptors of 16 columns for each unit. `x` points to
//                    the first of these columns of row 0, `rows` maps instances to rows, with -1 for a missing row (null: the
//                    identity), `stride` is as above, and `count`, a multiple of 4 and at most 16, is the number of columns that
//                    are read; 0 for padding. The argument `x` may be any address of global memory.
//
// All pointers are multiples of 16 bytes. Numbers that are read beyond the columns of a view must be finite.
//
//   basis           floats [32 units][WIDTH], zeros in padding columns of X or of V
//   tables          of each pattern, see descent.cuh
//   patterns        the pattern of each instance; null: 0
//   from, to        V, doubles [instances][latent], before and after; may be equal
//   scale           floats [latent]: V starts from `from` times these
//   passes          passes of coordinate descent; with 0, V is only scaled
//   sums_of_parts   doubles [blocks GROUPS][32 units][WIDTH], for `add_parts`: parts of C, padded

#include "common.cuh"
#include "descent.cuh"

constexpr int WARPS = 8;
constexpr int THREADS = 32 * WARPS;
constexpr int STAGES = 3;
constexpr int WIDTH = 8 * TILES;
constexpr int PARTS = SPLIT == 3 ? 2 : 1;

// Rows of a tile, and the warps that share its columns.
constexpr int ROWS = 16 * GROUPS;
constexpr int ACROSS = WARPS / GROUPS;

// Numbers of a unit, 16 rows by 32 columns of X, and of a tile.
constexpr int UNIT = 16 * 32;
constexpr int TILE = WARPS * UNITS * UNIT;

// Stride of the rows of r and V in shared memory, without bank conflicts between the lanes of a warp.
constexpr int STRIDE = 24;

// Whether two teams alternate, the threads of a team, and the number of buffers through which teams exchange r and V.
constexpr bool TURNS = GROUPS == 1;
constexpr int TEAM = TURNS ? THREADS / 2 : 32 * ACROSS;
constexpr int BUFFERS = TURNS ? 2 : 1;

// Whether V of a team's next tile is loaded into registers. If they do not suffice, it is only prefetched into the L2 cache.
constexpr bool AHEAD = TURNS && PARTS == 1;

// Lengths of the first product of a tile, one part per warp, and of the tile's V.
constexpr int RIGHTS = WARPS * 16 * STRIDE;
constexpr int LATENT = ROWS * STRIDE;

// Threads per row in the V step, and entries of v that each holds: number e of thread l is entry e LANES + l.
constexpr int LANES = TEAM / 16;
constexpr int ENTRIES = WIDTH / LANES;

using Own = Table<TILES>;

// Tiles after which sums in floats are added to those in doubles.
constexpr int FLUSH = 256;

struct Columns {
    const float* x;
    const int* rows;
    int stride;
    int count;
};

// The part of a float that tensor cores read, and the remainder.
__device__ inline float large(float value) {
    return __uint_as_float(PARTS == 2 ? __float_as_uint(value) & 0xffffe000 : rounded(value));
}
__device__ inline float small(float value) { return value - __uint_as_float(__float_as_uint(value) & 0xffffe000); }

// The remainder, recomputed at each use rather than kept in a register.
__device__ inline float small_again(float value) {
    float cut;
    asm volatile("and.b32 %0, %1, 0xffffe000;" : "=f"(cut) : "f"(value));
    return value - cut;
}

// c += a b, of the parts of floats.
__device__ inline void multiply(float* c, const float* a, const float* b) {
    const unsigned left[4] = {__float_as_uint(a[0]), __float_as_uint(a[1]), __float_as_uint(a[2]), __float_as_uint(a[3])};
    const unsigned right[2] = {__float_as_uint(b[0]), __float_as_uint(b[1])};
    tensor(c, left, right);
}

__device__ inline void prefetch(const double* at) { asm volatile("prefetch.global.L2 [%0];" ::"l"(at)); }

// Named barriers: `meet` waits until `threads` threads have arrived, `pass` arrives without waiting.
__device__ inline void meet(int barrier, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory"); }
__device__ inline void pass(int barrier, int threads) { asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory"); }

// Waits until the shared memory writes of a team are visible to it.
__device__ inline void meet_team(int team) {
    if (TEAM == 32)
        __syncwarp();
    else
        meet(1 + team, TEAM);
}

extern "C" __global__ void __launch_bounds__(THREADS, UNITS == 1 ? 2 : 1)
fused(const float* __restrict__ x, long long stride, int width, const Columns* __restrict__ columns, int units,
      const float* __restrict__ basis, const float* __restrict__ tables, const int* __restrict__ patterns, const double* from,
      const float* __restrict__ scale, double* to, long long instances, int latent, int passes,
      double* __restrict__ sums_of_parts) {
    extern __shared__ __align__(16) unsigned char shared[];
    float* const tiles = reinterpret_cast<float*>(shared);
    float* const rights = tiles + STAGES * TILE;
    float* const latents = rights + BUFFERS * RIGHTS;
    float* const table = latents + BUFFERS * LATENT;
    float* const scales = table + Own::SIZE;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, member = lane % 4;
    const int across = warp % ACROSS, high = warp / ACROSS;
    const long long all = (instances + ROWS - 1) / ROWS;
    const int count = blockIdx.x < all ? (int)((all - blockIdx.x + gridDim.x - 1) / gridDim.x) : 0;
    const auto first_of = [&](int i) { return (blockIdx.x + (long long)i * gridDim.x) * ROWS; };

    // Copies the columns of this warp of tile i. Pieces of 16 bytes are permuted within a row of a unit, so that neither product has
    // bank conflicts.
    const auto load = [&](int i) {
        if (i >= count) return;
        const int row = lane / 8, piece = lane % 8;
        const long long first = first_of(i) + 16 * high + row;
        float* const place = tiles + i % STAGES * TILE + warp * UNITS * UNIT + row * 32 + (piece ^ (row % 2 * 4 + row / 2 * 2)) * 4;
        if (!columns) {
            const int column = 32 * across + 4 * piece;
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const bool there = first + 4 * j < instances;
                const float* const own = there ? x + (first + 4 * j) * stride + column : x;
                const int end = there ? width - column : 0;
#pragma unroll
                for (int q = 0; q < UNITS; q++)
                    copy(place + q * UNIT + j * 128, own + 32 * ACROSS * q, 32 * ACROSS * q < end);
            }
            return;
        }
#pragma unroll 1
        for (int q = 0; q < UNITS && q * ACROSS + across < units; q++) {
            const Columns own = columns[2 * (q * ACROSS + across) + piece / 4];
            const bool there = piece % 4 * 4 < own.count;
#pragma unroll
            for (int j = 0; j < 4; j++) {
                long long at = there && first + 4 * j < instances ? first + 4 * j : -1;
                if (own.rows && at >= 0) at = own.rows[at];
                copy(place + q * UNIT + j * 128, at >= 0 ? own.x + at * own.stride + piece % 4 * 4 : x, at >= 0);
            }
        }
    };

    // The V step of a row: LANES threads hold its gradient, divided by G_kk.
    const int team = threadIdx.x / TEAM, place = (TURNS ? threadIdx.x % TEAM : threadIdx.x) / LANES, entry = threadIdx.x % LANES;
    double held[ENTRIES];
    const auto fetch = [&](int i) {
        const long long instance = first_of(i) + place;
#pragma unroll
        for (int e = 0; e < ENTRIES; e++) {
            const int k = e * LANES + entry;
            held[e] = instance < instances && k < latent ? from[instance * latent + k] : 0;
        }
    };
    const auto step_of = [&](int i) {
        const long long instance = first_of(i) + place;
        float* const v = latents + i % BUFFERS * LATENT + place * STRIDE;
#pragma unroll
        for (int e = 0; e < ENTRIES; e++) v[e * LANES + entry] = (float)held[e] * scales[e * LANES + entry];
        __syncwarp();
        const float* const right = rights + i % BUFFERS * RIGHTS + (place / 16 * ACROSS * 16 + place % 16) * STRIDE;
        const float* const own = patterns ? tables + (size_t)(instance < instances ? patterns[instance] : 0) * Own::SIZE : table;
        float gradient[ENTRIES];
#pragma unroll
        for (int e = 0; e < ENTRIES; e++) {
            const int k = e * LANES + entry;
            float sums[ACROSS];
#pragma unroll
            for (int other = 0; other < ACROSS; other++) sums[other] = right[other * 16 * STRIDE + k];
#pragma unroll
            for (int distance = ACROSS / 2; distance > 0; distance /= 2)
#pragma unroll
                for (int other = 0; other < distance; other++) sums[other] += sums[other + distance];
            gradient[e] = (sums[0] - own[Own::OFFSETS + k]) * own[Own::STEPS + k];
        }
        if (patterns)
            descend<LANES, TILES, 1>(own, v, gradient, latent, passes);
        else
            descend<LANES, TILES, TILES>(table, v, gradient, latent, passes);
#pragma unroll
        for (int e = 0; e < ENTRIES; e++) {
            const int k = e * LANES + entry;
            if (k < latent && instance < instances) to[instance * latent + k] = v[k];
        }
        if (AHEAD) return;
        // Prefetches the cache lines of V of this team's next tile.
        const long long next = first_of(i + (TURNS ? 2 : 1)) + (TURNS ? 0 : 16 * team);
        const long long line = next * latent + threadIdx.x % TEAM * 16;
        if (threadIdx.x % TEAM < latent + 1 && line < instances * latent) prefetch(from + line);
    };

    for (int i = threadIdx.x; i < STAGES * TILE; i += THREADS) tiles[i] = 0;
    __syncthreads();
    for (int i = 0; i < STAGES; i++) {
        load(i);
        copies_begun();
    }
    for (int i = threadIdx.x; i < Own::SIZE && !patterns; i += THREADS) table[i] = tables[i];
    for (int i = threadIdx.x; i < WIDTH; i += THREADS) scales[i] = i < latent ? scale[i] : 0;
    __syncthreads();

    // The parts of U and C of a warp, in the layout of tensor cores.
    float u[UNITS][4][TILES][2], totals[UNITS][2][TILES][4];
#pragma unroll
    for (int q = 0; q < UNITS; q++) {
        const int unit = q * ACROSS + across;
        const float* const own = basis + (32 * unit + 4 * member) * WIDTH + group;
#pragma unroll
        for (int step = 0; step < 4; step++)
#pragma unroll
            for (int n = 0; n < TILES; n++)
#pragma unroll
                for (int j = 0; j < 2; j++) {
                    const float value = unit < units ? own[(step / 2 * 16 + step % 2 * 2 + j) * WIDTH + 8 * n] : 0;
                    u[q][step][n][j] = PARTS == 2 ? value : large(value);
                    totals[q][step / 2][n][step % 2 * 2 + j] = 0;
                }
    }

    // Offsets at which a lane reads: 4 columns of both halves of a unit in two rows for the first product, 4 columns of 4 rows for the
    // second.
    const int turn = group % 2 * 4 + group / 2 % 2 * 2;
    const int by_row = warp * UNITS * UNIT + group * 32 + (member ^ turn) * 4, half_way = turn & 4 ? -16 : 16;
    const int by_column = warp * UNITS * UNIT + member * 32 + (group ^ (member % 2 * 4 + member / 2 * 2)) * 4;
    const auto first_product = [&](int i) {
        copies_done<TURNS ? STAGES - 2 : STAGES - 1>();
        __syncwarp();
        const float* const rows_of_tile = tiles + i % STAGES * TILE + by_row;
        float products[TILES][4] = {};
#pragma unroll
        for (int q = 0; q < UNITS; q++) {
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const float4 top = four(rows_of_tile + q * UNIT + half * half_way);
                const float4 bottom = four(rows_of_tile + q * UNIT + half * half_way + 256);
#pragma unroll
                for (int step = 0; step < 2; step++) {
                    const float both[4] = {step ? top.z : top.x, step ? bottom.z : bottom.x, step ? top.w : top.y,
                                           step ? bottom.w : bottom.y};
                    float a[4], a_rest[4];
#pragma unroll
                    for (int j = 0; j < 4; j++) a[j] = large(both[j]), a_rest[j] = small(both[j]);
                    const auto& own = u[q][2 * half + step];
                    // Sums alternate, because each product waits for the previous one of its sum.
                    if (PARTS == 2) {
#pragma unroll
                        for (int n = 0; n < TILES; n++) {
                            const float rests[2] = {small_again(own[n][0]), small_again(own[n][1])};
                            multiply(products[n], a, rests);
                        }
#pragma unroll
                        for (int n = 0; n < TILES; n++) multiply(products[n], a_rest, own[n]);
                    }
#pragma unroll
                    for (int n = 0; n < TILES; n++) multiply(products[n], a, own[n]);
                }
            }
        }
        float* const right = rights + i % BUFFERS * RIGHTS + (16 * warp + group) * STRIDE + 2 * member;
#pragma unroll
        for (int n = 0; n < TILES; n++) {
            *reinterpret_cast<float2*>(right + 8 * n) = make_float2(products[n][0], products[n][1]);
            *reinterpret_cast<float2*>(right + 8 * STRIDE + 8 * n) = make_float2(products[n][2], products[n][3]);
        }
    };
    const auto second_product = [&](int i) {
        const float* const tile = tiles + i % STAGES * TILE + by_column;
        const float* const v = latents + i % BUFFERS * LATENT + (16 * high + member) * STRIDE + group;
#pragma unroll
        for (int q = 0; q < UNITS; q++) {
            float sums[2][TILES][4] = {};
#pragma unroll
            for (int step = 0; step < 2; step++) {
                const float4 top = four(tile + q * UNIT + step * 256), bottom = four(tile + q * UNIT + step * 256 + 128);
                float a[2][4], a_rest[2][4];
#pragma unroll
                for (int m = 0; m < 2; m++) {
                    const float both[4] = {m ? top.z : top.x, m ? top.w : top.y, m ? bottom.z : bottom.x, m ? bottom.w : bottom.y};
#pragma unroll
                    for (int j = 0; j < 4; j++) a[m][j] = large(both[j]), a_rest[m][j] = small(both[j]);
                }
                float b[TILES][2], b_rest[TILES][2];
#pragma unroll
                for (int n = 0; n < TILES; n++)
#pragma unroll
                    for (int j = 0; j < 2; j++) {
                        const float value = v[(8 * step + 4 * j) * STRIDE + 8 * n];
                        b[n][j] = large(value), b_rest[n][j] = small(value);
                    }
                if (PARTS == 2) {
#pragma unroll
                    for (int m = 0; m < 2 * TILES; m++) multiply(sums[m % 2][m / 2], a[m % 2], b_rest[m / 2]);
#pragma unroll
                    for (int m = 0; m < 2 * TILES; m++) multiply(sums[m % 2][m / 2], a_rest[m % 2], b[m / 2]);
                }
#pragma unroll
                for (int m = 0; m < 2 * TILES; m++) multiply(sums[m % 2][m / 2], a[m % 2], b[m / 2]);
            }
            // Tensor cores truncate their sums, so the sums over 16 rows are added outside of them.
#pragma unroll
            for (int m = 0; m < 2; m++)
#pragma unroll
                for (int n = 0; n < TILES; n++)
#pragma unroll
                    for (int j = 0; j < 4; j++) totals[q][m][n][j] += sums[m][n][j];
        }
    };
    // Adds the totals of this warp to its part of the sums.
    const auto flush = [&](bool first) {
        const size_t part = (size_t)blockIdx.x * GROUPS + high;
        double* const out = sums_of_parts + (part * 32 * units + 32 * across + 4 * group) * WIDTH + 2 * member;
#pragma unroll
        for (int q = 0; q < UNITS; q++) {
            if (q * ACROSS + across >= units) continue;
#pragma unroll
            for (int j = 0; j < 4; j++)
#pragma unroll
                for (int n = 0; n < TILES; n++) {
                    double2* const at = reinterpret_cast<double2*>(out + (32 * q * ACROSS + j) * WIDTH + 8 * n);
                    float* const own = totals[q][j / 2][n] + j % 2 * 2;
                    double2 sum = first ? make_double2(0, 0) : *at;
                    sum.x += own[0], sum.y += own[1];
                    *at = sum;
                    own[0] = own[1] = 0;
                }
        }
    };

    for (int i = -1; i < count; i++) {
        const bool begun = i >= 0, more = i + 1 < count;
        // Whether this team performs the V step of tile i. If teams alternate, barriers 3 and 4 signal that the first product of a
        // tile is complete, and 5 and 6 that its V is.
        const bool steps = !TURNS || (i + team) % 2 == 0;
        if (begun && steps) {
            if (!AHEAD) fetch(i);
            if (TURNS)
                meet(3 + i % 2, THREADS);
            else
                meet_team(team);
            step_of(i);
            if (TURNS) pass(5 + i % 2, THREADS);
        }
        if (TURNS && more) {
            first_product(i + 1);
            if (steps) pass(3 + (i + 1) % 2, THREADS);
        }
        if (AHEAD && more && !steps) fetch(i + 1);
        if (begun) {
            if (steps)
                meet_team(team);
            else
                meet(5 + i % 2, THREADS);
            second_product(i);
            __syncwarp();
            load(i + STAGES);
            copies_begun();
            if ((i + 1) % FLUSH == 0 || !more) flush(i < FLUSH);
        }
        if (!TURNS && more) first_product(i + 1);
    }
    copies_done<0>();
}
