// Plugin of gcc 12: accesses that -fsanitize=thread leaves out become ones that are seen.
//
// Calls       gcc expands calls of memset, strlen and their relatives inline, where no hook is. Behind the
//             instrumentation they become calls of the same functions that the compiler knows nothing
//             of, so they stay calls, and the linker's --wrap brings them to the runtime
//             (monitor/probe/library_calls). What the compiler computed itself until then (strlen("abc"))
//             stays computed.
// Aggregates  An object in memory that a call gets or gives is copied by the caller, without a hook:
//             the copy becomes an assignment, in front of the instrumentation. Copies and clearings for
//             which the compiler calls memcpy, memmove and memset itself have their hooks, so they
//             call tsomon_runtime_memcpy and so on, which record nothing.
// Vectors     Loads and stores by functions of the processor (_mm_stream_si128) get a hook in front. Of
//             those with a mask the whole vector is recorded, of gathers and scatters nothing.
// Bit fields  A store of one loads the rest of what it lies in: a hook says so.
// Misses      Inline assembly; thunks of virtual functions, which load from the object; functions
//             that the program excludes from instrumentation.
// Source      GCC Internals (12), chapters "Plugins" and "GIMPLE".
// Cost        Two passes over the statements. Thread-safety: none needed.
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

// In the order that they need.
// clang-format off
#include <gcc-plugin.h>
#include <plugin-version.h>
#include <tree.h>
#include <gimple.h>
#include <gimple-iterator.h>
#include <gimplify.h>
#include <gimplify-me.h>
#include <ssa.h>
#include <tree-pass.h>
#include <tree-cfg.h>
#include <context.h>
#include <diagnostic-core.h>
#include <fold-const.h>
#include <stringpool.h>
#include <attribs.h>
#include <asan.h>
#include <cgraph.h>
// clang-format on

int plugin_is_GPL_compatible;  // gcc loads no other

namespace {

// ---- Functions made here, by their names: gcc's collector of garbage has to know of them.

constexpr size_t kMostFunctions = 256;
tree kept_functions[kMostFunctions];
const ggc_root_tab kept_roots[] = {{static_cast<void*>(kept_functions), kMostFunctions,
                                    sizeof(tree), &gt_ggc_mx_tree_node, &gt_pch_nx_tree_node},
                                   LAST_GGC_ROOT_TAB};

tree& kept_function(const std::string& name) {
  static std::unordered_map<std::string, size_t>* const places =
      new std::unordered_map<std::string, size_t>;
  const size_t place = places->emplace(name, places->size()).first->second;
  if (place >= kMostFunctions) {
    internal_error("%<tsomon_calls%>: more than %d functions", static_cast<int>(kMostFunctions));
  }
  return kept_functions[place];
}

// ---- Calls of the C library.

// The functions that read or write the memory that they are given, and that the compiler may expand.
bool accesses_memory(built_in_function code) {
  switch (code) {
    case BUILT_IN_BCMP:
    case BUILT_IN_BCOPY:
    case BUILT_IN_BZERO:
    case BUILT_IN_INDEX:
    case BUILT_IN_MEMCHR:
    case BUILT_IN_MEMCMP:
    case BUILT_IN_MEMCMP_EQ:
    case BUILT_IN_MEMCPY:
    case BUILT_IN_MEMCPY_CHK:
    case BUILT_IN_MEMMOVE:
    case BUILT_IN_MEMMOVE_CHK:
    case BUILT_IN_MEMPCPY:
    case BUILT_IN_MEMPCPY_CHK:
    case BUILT_IN_MEMSET:
    case BUILT_IN_MEMSET_CHK:
    case BUILT_IN_RINDEX:
    case BUILT_IN_STPCPY:
    case BUILT_IN_STPCPY_CHK:
    case BUILT_IN_STPNCPY:
    case BUILT_IN_STPNCPY_CHK:
    case BUILT_IN_STRCASECMP:
    case BUILT_IN_STRCAT:
    case BUILT_IN_STRCAT_CHK:
    case BUILT_IN_STRCHR:
    case BUILT_IN_STRCMP:
    case BUILT_IN_STRCMP_EQ:
    case BUILT_IN_STRCPY:
    case BUILT_IN_STRCPY_CHK:
    case BUILT_IN_STRCSPN:
    case BUILT_IN_STRDUP:
    case BUILT_IN_STRLEN:
    case BUILT_IN_STRNCASECMP:
    case BUILT_IN_STRNCAT:
    case BUILT_IN_STRNCAT_CHK:
    case BUILT_IN_STRNCMP:
    case BUILT_IN_STRNCMP_EQ:
    case BUILT_IN_STRNCPY:
    case BUILT_IN_STRNCPY_CHK:
    case BUILT_IN_STRNDUP:
    case BUILT_IN_STRNLEN:
    case BUILT_IN_STRPBRK:
    case BUILT_IN_STRRCHR:
    case BUILT_IN_STRSPN:
    case BUILT_IN_STRSTR:
    case BUILT_IN_SPRINTF:
    case BUILT_IN_SPRINTF_CHK:
    case BUILT_IN_SNPRINTF:
    case BUILT_IN_SNPRINTF_CHK:
    case BUILT_IN_VSPRINTF:
    case BUILT_IN_VSPRINTF_CHK:
    case BUILT_IN_VSNPRINTF:
    case BUILT_IN_VSNPRINTF_CHK:
    case BUILT_IN_FREXP:
    case BUILT_IN_FREXPF:
    case BUILT_IN_FREXPL:
    case BUILT_IN_MODF:
    case BUILT_IN_MODFF:
    case BUILT_IN_MODFL:
    case BUILT_IN_REMQUO:
    case BUILT_IN_REMQUOF:
    case BUILT_IN_REMQUOL:
    case BUILT_IN_SINCOS:
    case BUILT_IN_SINCOSF:
    case BUILT_IN_SINCOSL:
      return true;
    default:
      return false;
  }
}

// What the compiler's own copies call instead; nullptr: that is the same.
const char* unrecorded(built_in_function code) {
  switch (code) {
    case BUILT_IN_MEMCPY:
      return "tsomon_runtime_memcpy";
    case BUILT_IN_MEMMOVE:
      return "tsomon_runtime_memmove";
    case BUILT_IN_MEMSET:
      return "tsomon_runtime_memset";
    default:
      return nullptr;
  }
}

const char* library_name(built_in_function code, tree function) {
  switch (code) {
    case BUILT_IN_MEMCPY:
      return "memcpy";
    case BUILT_IN_MEMMOVE:
      return "memmove";
    case BUILT_IN_MEMSET:
      return "memset";
    case BUILT_IN_MEMCMP_EQ:
      return "memcmp";
    case BUILT_IN_STRCMP_EQ:
      return "strcmp";
    case BUILT_IN_STRNCMP_EQ:
      return "strncmp";
    default:
      return IDENTIFIER_POINTER(DECL_ASSEMBLER_NAME(function));
  }
}

// The function as one that the compiler knows nothing of but its type and attributes.
tree plain_function(tree function, const char* name) {
  tree& plain = kept_function(name);
  if (plain == NULL_TREE) {
    plain = build_fn_decl(name, TREE_TYPE(function));
    TREE_NOTHROW(plain) = TREE_NOTHROW(function);
    DECL_PURE_P(plain) = DECL_PURE_P(function);
    DECL_ATTRIBUTES(plain) = DECL_ATTRIBUTES(function);
    SET_DECL_ASSEMBLER_NAME(plain, get_identifier(name));
  }
  return plain;
}

bool is_defined_here(tree function) {
  const cgraph_node* const node = cgraph_node::get(function);
  return node != nullptr && node->definition && !DECL_EXTERNAL(function);
}

void keep_call(gcall* call) {
  if (!gimple_call_builtin_p(call, BUILT_IN_NORMAL)) {
    return;
  }
  const tree function = gimple_call_fndecl(call);
  const built_in_function code = DECL_FUNCTION_CODE(function);
  if (!accesses_memory(code) || is_defined_here(function)) {
    return;
  }
  gimple_call_set_fndecl(call, plain_function(function, library_name(code, function)));
  gimple_call_set_fntype(call, TREE_TYPE(function));
  update_stmt(call);
}

// From now on the compiler's own copies are made by functions that record nothing.
void set_own_copies() {
  for (const built_in_function code : {BUILT_IN_MEMCPY, BUILT_IN_MEMMOVE, BUILT_IN_MEMSET}) {
    const tree known = builtin_decl_explicit(code);
    if (known == NULL_TREE) {
      continue;
    }
    const tree own = copy_node(known);
    SET_DECL_ASSEMBLER_NAME(own, get_identifier(unrecorded(code)));
    SET_DECL_RTL(own, NULL);
    set_builtin_decl(code, own, true);
  }
}

// ---- Hooks.

tree hook(const char* name, bool with_size) {
  tree& function = kept_function(name);
  if (function == NULL_TREE) {
    function = build_fn_decl(
        name, with_size ? build_function_type_list(void_type_node, ptr_type_node, size_type_node,
                                                   NULL_TREE)
                        : build_function_type_list(void_type_node, ptr_type_node, NULL_TREE));
    TREE_NOTHROW(function) = 1;
  }
  return function;
}

// In front of the statement: an access of `size` bytes is about to happen.
void put_hook(gimple_stmt_iterator* place, tree address, uint64_t size, bool store) {
  gimple* const statement = gsi_stmt(*place);
  address = force_gimple_operand_gsi(place, fold_convert(ptr_type_node, address), true, NULL_TREE,
                                     true, GSI_SAME_STMT);
  const bool single = size == 1 || size == 2 || size == 4 || size == 8 || size == 16;
  const std::string kind = store ? "write" : "read";
  const std::string name = "__tsan_" + (size > 1 && single ? std::string("unaligned_") : "") +
                           kind + (single ? std::to_string(size) : "_range");
  gcall* const call =
      single ? gimple_build_call(hook(name.c_str(), false), 1, address)
             : gimple_build_call(hook(name.c_str(), true), 2, address,
                                 build_int_cst(size_type_node, static_cast<HOST_WIDE_INT>(size)));
  gimple_set_location(call, gimple_location(statement));
  gsi_insert_before(place, call, GSI_SAME_STMT);
}

// ---- Functions of the processor.

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// A function of the processor with a pointer among its arguments loads what it gives, or stores a
// vector that it gets.
void hook_vector(gimple_stmt_iterator* place) {
  gcall* const call = as_a<gcall*>(gsi_stmt(*place));
  if (!gimple_call_builtin_p(call, BUILT_IN_MD)) {
    return;
  }
  const tree function = gimple_call_fndecl(call);
  const std::string_view name = IDENTIFIER_POINTER(DECL_NAME(function));
  for (const char* const without :
       {"prefetch", "clflush", "clwb", "cldemote", "gather", "scatter", "monitor", "umonitor",
        "pause", "xsave", "xrstor", "fxsave", "fxrstor"}) {
    if (contains(name, without)) {
      return;
    }
  }
  tree address = NULL_TREE;
  uint64_t widest = 0;
  for (unsigned i = 0; i < gimple_call_num_args(call); ++i) {
    const tree argument = gimple_call_arg(call, i);
    const tree type = TREE_TYPE(argument);
    if (POINTER_TYPE_P(type)) {
      address = address == NULL_TREE ? argument : address;
    } else if (const HOST_WIDE_INT size = int_size_in_bytes(type);
               size > 0 && (VECTOR_TYPE_P(type) || widest == 0)) {
      widest = VECTOR_TYPE_P(type) && static_cast<uint64_t>(size) < widest ? widest : size;
    }
  }
  if (address == NULL_TREE) {
    return;
  }
  const tree result = TREE_TYPE(TREE_TYPE(function));
  const bool store = VOID_TYPE_P(result);
  uint64_t size = store ? widest : int_size_in_bytes(result);
  if (contains(name, "loadlp") || contains(name, "loadhp") || contains(name, "storelp") ||
      contains(name, "storehp")) {
    size = 8;  // half of the vector
  } else if (contains(name, "stmxcsr") || contains(name, "ldmxcsr")) {
    size = 4;
  } else if (contains(name, "movdir64b")) {
    size = 64;
  }
  if (size > 0 && size <= 64) {
    put_hook(place, address, size, store && !contains(name, "ldmxcsr"));
  }
}

// ---- Aggregates that calls get and give.

bool is_in_memory(tree value) {
  return value != NULL_TREE && !is_gimple_reg(value) && !is_gimple_min_invariant(value) &&
         !TREE_ADDRESSABLE(TREE_TYPE(value)) && AGGREGATE_TYPE_P(TREE_TYPE(value)) &&
         int_size_in_bytes(TREE_TYPE(value)) > 0;
}

// Not an object that only the function itself knows.
bool may_be_shared(tree value) {
  const tree base = get_base_address(value);
  return base == NULL_TREE || !DECL_P(base) || is_global_var(base) || may_be_aliased(base);
}

void copy_arguments(gimple_stmt_iterator* place) {
  gcall* const call = as_a<gcall*>(gsi_stmt(*place));
  for (unsigned i = 0; i < gimple_call_num_args(call); ++i) {
    const tree argument = gimple_call_arg(call, i);
    if (!is_in_memory(argument) || !may_be_shared(argument)) {
      continue;
    }
    const tree copy = create_tmp_var(TYPE_MAIN_VARIANT(TREE_TYPE(argument)), "tsomon");
    gassign* const load = gimple_build_assign(copy, unshare_expr(argument));
    gimple_set_location(load, gimple_location(call));
    gsi_insert_before(place, load, GSI_SAME_STMT);
    gimple_call_set_arg(call, i, copy);
    update_stmt(call);
  }
}

void copy_result(gimple_stmt_iterator* place) {
  gcall* const call = as_a<gcall*>(gsi_stmt(*place));
  const tree result = gimple_call_lhs(call);
  if (!is_in_memory(result) || !may_be_shared(result) || gimple_call_internal_p(call)) {
    return;
  }
  const tree copy = create_tmp_var(TYPE_MAIN_VARIANT(TREE_TYPE(result)), "tsomon");
  gassign* const store = gimple_build_assign(unshare_expr(result), copy);
  gimple_set_location(store, gimple_location(call));
  gimple_call_set_lhs(call, copy);
  gimple_call_set_return_slot_opt(call, false);
  update_stmt(call);
  if (!stmt_ends_bb_p(call)) {
    gsi_insert_after(place, store, GSI_NEW_STMT);
    return;
  }
  edge way = nullptr;
  edge_iterator iterator;
  FOR_EACH_EDGE(way, iterator, gimple_bb(call)->succs) {
    if ((way->flags & EDGE_FALLTHRU) != 0) {
      gsi_insert_on_edge(way, store);
      return;
    }
  }
}

// A store of a bit field that does not fill what it lies in loads the rest.
void hook_bit_field(gimple_stmt_iterator* place) {
  const gimple* const statement = gsi_stmt(*place);
  if (!gimple_assign_single_p(statement) || !gimple_store_p(statement)) {
    return;
  }
  const tree target = gimple_assign_lhs(statement);
  if (TREE_CODE(target) != COMPONENT_REF || !DECL_BIT_FIELD_TYPE(TREE_OPERAND(target, 1)) ||
      !may_be_shared(target)) {
    return;
  }
  const tree field = TREE_OPERAND(target, 1);
  const tree whole = DECL_BIT_FIELD_REPRESENTATIVE(field);
  if (whole == NULL_TREE || DECL_SIZE(field) == NULL_TREE || !tree_fits_uhwi_p(DECL_SIZE(field)) ||
      !tree_fits_uhwi_p(DECL_SIZE(whole)) ||
      tree_to_uhwi(DECL_SIZE(field)) == tree_to_uhwi(DECL_SIZE(whole))) {
    return;
  }
  const tree container = build3(COMPONENT_REF, TREE_TYPE(whole),
                                unshare_expr(TREE_OPERAND(target, 0)), whole, NULL_TREE);
  put_hook(place, build_fold_addr_expr(container), tree_to_uhwi(DECL_SIZE(whole)) / 8, false);
}

// The instrumentation has a pass with optimization and one without, of which one does something.
bool is_instrumented(bool optimizing) {
  return optimizing == (optimize != 0) && (flag_sanitize & SANITIZE_THREAD) != 0 &&
         sanitize_flags_p(SANITIZE_THREAD, current_function_decl);
}

// In front of the instrumentation.
class Before : public gimple_opt_pass {
 public:
  Before(const pass_data& data, bool optimizing)
      : gimple_opt_pass(data, g), optimizing_(optimizing) {}
  opt_pass* clone() override { return new Before(*this); }
  bool gate(function*) override { return is_instrumented(optimizing_); }
  unsigned execute(function* body) override {
    basic_block block;
    FOR_EACH_BB_FN(block, body) {
      for (gimple_stmt_iterator place = gsi_start_bb(block); !gsi_end_p(place); gsi_next(&place)) {
        if (is_gimple_call(gsi_stmt(place))) {
          copy_arguments(&place);
          copy_result(&place);
        }
      }
    }
    gsi_commit_edge_inserts();
    return 0;
  }

 private:
  bool optimizing_;
};

// Behind it.
class Behind : public gimple_opt_pass {
 public:
  Behind(const pass_data& data, bool optimizing)
      : gimple_opt_pass(data, g), optimizing_(optimizing) {}
  opt_pass* clone() override { return new Behind(*this); }
  bool gate(function*) override { return is_instrumented(optimizing_); }
  unsigned execute(function* body) override {
    static bool set = false;
    if (!set) {
      set = true;
      set_own_copies();
    }
    basic_block block;
    FOR_EACH_BB_FN(block, body) {
      for (gimple_stmt_iterator place = gsi_start_bb(block); !gsi_end_p(place); gsi_next(&place)) {
        if (is_gimple_call(gsi_stmt(place))) {
          keep_call(as_a<gcall*>(gsi_stmt(place)));
          hook_vector(&place);
        } else {
          hook_bit_field(&place);
        }
      }
    }
    return 0;
  }

 private:
  bool optimizing_;
};

template <typename Pass>
void register_pass_at(const char* reference, pass_positioning_ops position, const char* plugin) {
  const bool optimizing = std::strcmp(reference, "tsan") == 0;
  static const pass_data data = {
      GIMPLE_PASS, "tsomon_calls", OPTGROUP_NONE, TV_NONE, PROP_cfg, 0, 0, 0, TODO_update_ssa};
  register_pass_info info = {};
  info.pass = new Pass(data, optimizing);
  info.reference_pass_name = reference;
  info.ref_pass_instance_number = 0;
  info.pos_op = position;
  register_callback(plugin, PLUGIN_PASS_MANAGER_SETUP, nullptr, &info);
}

}  // namespace

int plugin_init(plugin_name_args* plugin, plugin_gcc_version* version) {
  if (!plugin_default_version_check(version, &gcc_version)) {
    error("%s was built for gcc %s and loaded by gcc %s", plugin->base_name, gcc_version.basever,
          version->basever);
    return 1;
  }
  register_callback(plugin->base_name, PLUGIN_REGISTER_GGC_ROOTS, nullptr,
                    const_cast<ggc_root_tab*>(kept_roots));
  for (const char* const instrumentation : {"tsan", "tsan0"}) {
    register_pass_at<Before>(instrumentation, PASS_POS_INSERT_BEFORE, plugin->base_name);
    register_pass_at<Behind>(instrumentation, PASS_POS_INSERT_AFTER, plugin->base_name);
  }
  return 0;
}
