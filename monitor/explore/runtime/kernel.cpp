#include "monitor/explore/runtime/kernel.h"

// One piece of code: the kernel is told its limits.
asm(R"(
.text
.balign 16
.globl tsomon_kernel_begin
.hidden tsomon_kernel_begin
tsomon_kernel_begin:

.globl tsomon_kernel_call
.hidden tsomon_kernel_call
.type tsomon_kernel_call, @function
tsomon_kernel_call:
  movq %rdi, %rax
  movq %rsi, %rdi
  movq %rdx, %rsi
  movq %rcx, %rdx
  movq %r8, %r10
  movq %r9, %r8
  movq 8(%rsp), %r9
  syscall
  ret

.globl tsomon_return_from_handler
.hidden tsomon_return_from_handler
.type tsomon_return_from_handler, @function
tsomon_return_from_handler:
  movl $15, %eax
  syscall
  ud2

.globl tsomon_switch
.hidden tsomon_switch
.type tsomon_switch, @function
tsomon_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  subq $8, %rsp
  stmxcsr (%rsp)
  fnstcw 4(%rsp)
  movq %rsp, (%rdi)
  movq (%rsi), %rsp
  movq 8(%rsi), %rsi
  cmpb $0, tsomon_has_wrfsbase(%rip)
  je 1f
  wrfsbase %rsi
2:
  ldmxcsr (%rsp)
  fldcw 4(%rsp)
  addq $8, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
1:
  movl $158, %eax
  movl $0x1002, %edi
  syscall
  jmp 2b

.globl tsomon_park
.hidden tsomon_park
.type tsomon_park, @function
tsomon_park:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  subq $8, %rsp
  stmxcsr (%rsp)
  fnstcw 4(%rsp)
  movq %rsp, (%rdi)
  movq %fs:0, %rax
  movq %rax, 8(%rdi)
  movq %rsi, %rbx
  movl $1, (%rbx)
  movl $202, %eax
  movq %rbx, %rdi
  movl $1, %esi
  movl $1, %edx
  syscall
3:
  movl $202, %eax
  movq %rbx, %rdi
  xorl %esi, %esi
  movl $1, %edx
  xorl %r10d, %r10d
  syscall
  jmp 3b

.globl tsomon_kernel_end
.hidden tsomon_kernel_end
tsomon_kernel_end:
  nop
)");

uint8_t tsomon_has_wrfsbase = 0;
