/* What the event loop knows of a Verilated node: its ports by name, and a function that is one clock. */
#ifndef BENTPIPE_MODEL_H
#define BENTPIPE_MODEL_H
#include <stdint.h>

typedef struct {
    const char* name;
    void* data;     /* uint8_t, uint16_t, uint32_t, uint64_t for 1..8, ..16, ..32, ..64 bits; uint32_t[] above */
    uint32_t width; /* bits */
} bp_port;

typedef struct {
    void* (*create)(void);
    void (*destroy)(void* model);
    void (*clock)(void* model);
    void (*reset)(void* model, int on);
    const bp_port* (*ports)(void* model, uint32_t* count); /* valid until the next call */
} bp_model;

#endif
