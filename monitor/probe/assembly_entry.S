# tsomon_runtime_asm: called from asm statements (monitor/probe/assembly_site.h). Preserves all registers, the flags
# but for what the runtime changes in the frame, and the vector state.
  .text
  .globl tsomon_runtime_asm
  .weak tsomon_runtime_asm
  .type tsomon_runtime_asm, @function
  .p2align 6
tsomon_runtime_asm:
  .cfi_startproc
  pushq %r15
  pushq %r14
  pushq %r13
  pushq %r12
  pushq %r11
  pushq %r10
  pushq %r9
  pushq %r8
  pushq %rdi
  pushq %rsi
  pushq %rbp
  pushq %rbp                    # the place of the flags
  pushq %rbx
  pushq %rdx
  pushq %rcx
  pushq %rax
  .cfi_def_cfa_offset 136
  lahf
  seto %al
  movq %rax, 32(%rsp)
  movq %rsp, %rbx
  .cfi_def_cfa rbx, 136
  .cfi_offset rbx, -112
  .cfi_offset rbp, -96
  .cfi_offset r12, -40
  .cfi_offset r13, -32
  .cfi_offset r14, -24
  .cfi_offset r15, -16
  movq %rsp, %rdi
  andq $-16, %rsp
  call tsomon_assembly_fast
  testb %al, %al
  jz .Lslow
.Ldone:
  movq %rbx, %rsp
  movq 32(%rsp), %rax
  addb $127, %al
  sahf
  popq %rax
  popq %rcx
  popq %rdx
  popq %rbx
  leaq 8(%rsp), %rsp
  popq %rbp
  popq %rsi
  popq %rdi
  popq %r8
  popq %r9
  popq %r10
  popq %r11
  popq %r12
  popq %r13
  popq %r14
  popq %r15
  ret
.Lslow:
  movl tsomon_vector_state_size(%rip), %eax
  testl %eax, %eax
  jz .Lfxsave
  subq %rax, %rsp
  andq $-64, %rsp
  xorl %eax, %eax
  .irp at, 512, 520, 528, 536, 544, 552, 560, 568
  movq %rax, \at(%rsp)
  .endr
  movl $0xe7, %eax              # x87, SSE, AVX, AVX-512
  xorl %edx, %edx
  xsave64 (%rsp)
  movq %rbx, %rdi
  leaq 160(%rsp), %rsi
  call tsomon_assembly_slow
  movl %eax, %r12d
  movl $0xe7, %eax
  xorl %edx, %edx
  xrstor64 (%rsp)
  testb %r12b, %r12b
  jz .Ldone
.Lstore:
  movq %rbx, %rdi
  call tsomon_assembly_store
  jmp .Ldone
.Lfxsave:
  subq $512, %rsp
  fxsave64 (%rsp)
  movq %rbx, %rdi
  leaq 160(%rsp), %rsi
  call tsomon_assembly_slow
  fxrstor64 (%rsp)
  testb %al, %al
  jz .Ldone
  jmp .Lstore
  .cfi_endproc
  .size tsomon_runtime_asm, .-tsomon_runtime_asm
  .section .note.GNU-stack, "", @progbits
