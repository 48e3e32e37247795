/* OpenSSL's queue of errors, its generator of random numbers and its digests: all are a thread's. */
#include "torture.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

WAY(openssl_errors) {
    ERR_clear_error();
    for (int i = 0; i < 3; i++) {
        ERR_raise_data(ERR_LIB_USER, 100 + i, "request %lu", seed);
        work(seed);
    }
    char expected[32];
    snprintf(expected, sizeof expected, "request %lu", seed);
    for (int i = 0; i < 3; i++) {
        const char *data = NULL;
        int flags;
        const unsigned long error = ERR_get_error_all(NULL, NULL, NULL, &data, &flags);
        EXPECT(ERR_GET_REASON(error) == 100 + i && data && strcmp(data, expected) == 0);
        work(seed);
    }
    EXPECT(ERR_get_error() == 0);
}

WAY(openssl_random) {
    static unsigned long given[4096];
    unsigned long token;
    EXPECT(RAND_bytes((unsigned char *)&token, sizeof token) == 1);
    work(seed);
    EXPECT(RAND_priv_bytes((unsigned char *)&token, sizeof token) == 1);
    work(seed);
    EXPECT(__atomic_exchange_n(&given[token % 4096], token, __ATOMIC_RELAXED) != token);
}

WAY(openssl_digest) {
    unsigned char first[EVP_MAX_MD_SIZE], again[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    EXPECT(EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1);
    for (int i = 0; i < 4; i++) {
        EVP_DigestUpdate(context, &seed, sizeof seed);
        work(seed);
    }
    EVP_DigestFinal_ex(context, first, &length);
    EVP_MD_CTX_free(context);
    const unsigned long all[4] = {seed, seed, seed, seed};
    EXPECT(EVP_Digest(all, sizeof all, again, &length, EVP_sha256(), NULL) == 1 && length == 32);
    EXPECT(memcmp(first, again, 32) == 0);
}
