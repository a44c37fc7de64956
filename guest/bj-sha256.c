/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-sha256.h"

#include <string.h>

/* FIPS 180-4, section 4.2.2: fractional parts of the cube roots of the first 64 primes. */
static const uint32_t k[64] = {
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
  0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
  0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
  0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08,
  0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
  0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static inline uint32_t
rotate (uint32_t x, int n)
{
  return x >> n | x << (32 - n);
}

static void
compress (uint32_t state[8], const uint8_t *data)
{
  uint32_t w[64];
  uint32_t v[8];

  for (int i = 0; i < 16; i++, data += 4)
    w[i] = (uint32_t) data[0] << 24 | (uint32_t) data[1] << 16 | (uint32_t) data[2] << 8 | data[3];
  for (int i = 16; i < 64; i++)
    {
      uint32_t s0 = rotate (w[i - 15], 7) ^ rotate (w[i - 15], 18) ^ w[i - 15] >> 3;
      uint32_t s1 = rotate (w[i - 2], 17) ^ rotate (w[i - 2], 19) ^ w[i - 2] >> 10;

      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
  memcpy (v, state, sizeof v);
  for (int i = 0; i < 64; i++)
    {
      uint32_t s1 = rotate (v[4], 6) ^ rotate (v[4], 11) ^ rotate (v[4], 25);
      uint32_t t1 = v[7] + s1 + ((v[4] & v[5]) ^ (~v[4] & v[6])) + k[i] + w[i];
      uint32_t s0 = rotate (v[0], 2) ^ rotate (v[0], 13) ^ rotate (v[0], 22);
      uint32_t t2 = s0 + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));

      v[7] = v[6];
      v[6] = v[5];
      v[5] = v[4];
      v[4] = v[3] + t1;
      v[3] = v[2];
      v[2] = v[1];
      v[1] = v[0];
      v[0] = t1 + t2;
    }
  for (int i = 0; i < 8; i++)
    state[i] += v[i];
}

void
bj_sha256_init (BjSha256 *self)
{
  static const uint32_t start[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

  memcpy (self->state, start, sizeof start);
  self->length = 0;
}

void
bj_sha256_update (BjSha256 *self, const uint8_t *data, size_t length)
{
  size_t used = self->length % 64;

  self->length += length;
  if (used > 0)
    {
      size_t n = length < 64 - used ? length : 64 - used;

      memcpy (self->block + used, data, n);
      data += n;
      length -= n;
      if (used + n < 64)
        return;
      compress (self->state, self->block);
    }
  for (; length >= 64; data += 64, length -= 64)
    compress (self->state, data);
  memcpy (self->block, data, length);
}

void
bj_sha256_finish (BjSha256 *self, uint8_t digest[32])
{
  static const uint8_t padding[64] = { 0x80 };
  uint64_t bits = self->length * 8;
  size_t used = self->length % 64;
  uint8_t end[8];

  bj_sha256_update (self, padding, used < 56 ? 56 - used : 120 - used);
  for (int i = 0; i < 8; i++)
    end[i] = (uint8_t) (bits >> (56 - 8 * i));
  bj_sha256_update (self, end, sizeof end);
  for (int i = 0; i < 32; i++)
    digest[i] = (uint8_t) (self->state[i / 4] >> (24 - 8 * (i % 4)));
}
