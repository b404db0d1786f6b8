// The socket through which this process is asked to be watched for a while (slices.h).
//
// Who asks    Processes of the same user, and root's: the kernel tells whose end of the socket it is. Others get no answer.
// Where       TSOMON_OPTIONS=control=on: the abstract name "tsomon/PID"; control=FOLDER: FOLDER/tsomon.PID, which goes with the
//             process that ends by exit. A program linked with `tsomon-c++ --control` has control=on unless its options
//             say otherwise.
// Request     One message of type SOCK_SEQPACKET, "slice MICROSECONDS", with the descriptor of an empty regular file. Answers:
//             "begun", then "ended watched=MICROSECONDS threads=N cut=N bytes=N"; or "error TEXT". Who closes the
//             socket ends the slice. One is served at a time. More that it may say, after a blank each:
//             "bytes=N": the slice ends before its time once there are so many bytes of records;
//             "only=N", "but=N", "first=N": behind the text, a byte of 0 and N addresses of 64 bits, at which functions
//             begin that have twins. Watched are only those, or all but those; or nothing but those until a
//             thread takes part, and then everything: the answer is "armed" first, and the time begins then.
// Harm        One thread of the runtime, signals blocked, with a descriptor table of its own, so that the program can
//             neither close the socket nor be given anybody's file. Nothing waits for who asks: a slice
//             ends at its time, answers that find no room are left out, requests are cut at kMostRequest bytes.
//             Where the program restricts its system calls (seccomp) the thread ends before.
// Cost        While nobody asks it looks once a second whether the program's own threads have all ended.
// Thread-safety: start_control() and end_control() on a thread of the program, one at a time.
#pragma once

namespace tsomon::probe {

// False: a message says why not.
bool start_control();
// The slice that is recorded, if any, ends; nobody is answered any more.
void end_control();
// At exit: the name of the socket in a folder.
void remove_control();
// In a child of fork.
void forget_control();

}  // namespace tsomon::probe
