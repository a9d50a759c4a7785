/* A plugin for qemu-user that counts the instructions of every function: arm_instructions.py compiles and uses it.
 *
 * Debian ships no plugins and no header for them, so the few functions that are used are declared here (API 1, QEMU
 * 4.2 to 8.1). At the end it writes a line for each function to the file that is its argument: count, name. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };

extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb* block);
extern struct qemu_plugin_insn* qemu_plugin_tb_get_insn(const struct qemu_plugin_tb* block, size_t place);
extern const char* qemu_plugin_insn_symbol(const struct qemu_plugin_insn* instruction);
extern void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
                                                  void (*call)(qemu_plugin_id_t, struct qemu_plugin_tb*));
extern void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb* block, enum qemu_plugin_op operation,
                                                     void* number, uint64_t amount);
extern void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, void (*call)(qemu_plugin_id_t, void*), void* data);

int qemu_plugin_version = 1;

/* One for each function; the program has one thread. */
struct function {
  char* name;
  uint64_t count;
  struct function* next;
};
static struct function* functions;
static const char* path;

static struct function* function_of(const char* name) {
  struct function* one;
  for (one = functions; one; one = one->next)
    if (!strcmp(one->name, name)) return one;
  one = calloc(1, sizeof *one);
  one->name = strdup(name);
  one->next = functions;
  return functions = one;
}

/* A block of instructions without jumps adds their number whenever it runs. */
static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb* block) {
  const char* name = qemu_plugin_insn_symbol(qemu_plugin_tb_get_insn(block, 0));
  (void)id;
  qemu_plugin_register_vcpu_tb_exec_inline(block, QEMU_PLUGIN_INLINE_ADD_U64,
                                           &function_of(name && *name ? name : "?")->count,
                                           qemu_plugin_tb_n_insns(block));
}

static void ended(qemu_plugin_id_t id, void* data) {
  FILE* out = fopen(path, "w");
  const struct function* one;
  (void)id, (void)data;
  if (!out) return;
  for (one = functions; one; one = one->next) fprintf(out, "%llu %s\n", (unsigned long long)one->count, one->name);
  fclose(out);
}

int qemu_plugin_install(qemu_plugin_id_t id, const void* info, int count, char** arguments) {
  (void)info;
  if (count != 1) return 1;
  path = strdup(strchr(arguments[0], '=') ? strchr(arguments[0], '=') + 1 : arguments[0]);
  qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
  qemu_plugin_register_atexit_cb(id, ended, NULL);
  return 0;
}
