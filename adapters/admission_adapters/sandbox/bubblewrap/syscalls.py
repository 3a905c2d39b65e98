"""System call numbers of the kernel for the filter, as `name:x86_64:generic`.

`generic` is the table of aarch64 and of every architecture since; `-` means that it has no such call. A test
compares the numbers with the kernel's headers where they are installed.
"""

from __future__ import annotations

NEWEST = 467
"""The last number assigned when this was written; newer calls get ENOSYS."""

_NUMBERS = """
accept4:288:242 accept:43:202 access:21:- acct:163:89 add_key:248:217 adjtimex:159:171 alarm:37:-
arch_prctl:158:- bind:49:200 bpf:321:280 brk:12:214 chdir:80:49 chmod:90:- chroot:161:51
clock_adjtime:305:266 clock_getres:229:114 clock_gettime:228:113 clock_nanosleep:230:115
clock_settime:227:112 clone3:435:435 clone:56:220 close:3:57 close_range:436:436 connect:42:203
copy_file_range:326:285 creat:85:- delete_module:176:106 dup2:33:- dup3:292:24 dup:32:23
epoll_create1:291:20 epoll_create:213:- epoll_ctl:233:21 epoll_pwait:281:22 epoll_wait:232:-
eventfd2:290:19 execve:59:221 exit:60:93 exit_group:231:94 faccessat2:439:439 faccessat:269:48
fallocate:285:47 fanotify_init:300:262 fchdir:81:50 fchmod:91:52 fchmodat:268:53 fcntl:72:25
fdatasync:75:83 fgetxattr:193:10 finit_module:313:273 flistxattr:196:13 flock:73:32 fork:57:-
fremovexattr:199:16 fsconfig:431:431 fsetxattr:190:7 fsmount:432:432 fsopen:430:430 fspick:433:433
fstat:5:80 fstatfs:138:44 fsync:74:82 ftruncate:77:46 futex:202:98 get_robust_list:274:100
getcpu:309:168 getcwd:79:17 getdents64:217:61 getegid:108:177 geteuid:107:175 getgid:104:176
getgroups:115:158 getitimer:36:102 getpeername:52:205 getpgid:121:155 getpgrp:111:- getpid:39:172
getppid:110:173 getpriority:140:141 getrandom:318:278 getresgid:120:150 getresuid:118:148
getrlimit:97:163 getrusage:98:165 getsid:124:156 getsockname:51:204 getsockopt:55:209 gettid:186:178
gettimeofday:96:169 getuid:102:174 getxattr:191:8 init_module:175:105 io_uring_enter:426:426
io_uring_register:427:427 io_uring_setup:425:425 ioctl:16:29 ioperm:173:- iopl:172:- kcmp:312:272
kexec_file_load:320:294 kexec_load:246:104 keyctl:250:219 kill:62:129 lgetxattr:192:9 link:86:-
linkat:265:37 listen:50:201 listmount:458:458 listxattr:194:11 llistxattr:195:12
lookup_dcookie:212:18 lremovexattr:198:15 lseek:8:62 lsetxattr:189:6 lstat:6:- madvise:28:233
membarrier:324:283 mincore:27:232 mkdir:83:- mkdirat:258:34 mmap:9:222 modify_ldt:154:- mount:165:40
mount_setattr:442:442 move_mount:429:429 mprotect:10:226 mremap:25:216 msync:26:227 munmap:11:215
name_to_handle_at:303:264 nanosleep:35:101 newfstatat:262:79 nfsservctl:180:42 open:2:-
open_by_handle_at:304:265 open_tree:428:428 openat:257:56 perf_event_open:298:241 personality:135:92
pidfd_getfd:438:438 pipe2:293:59 pipe:22:- pivot_root:155:41 poll:7:- ppoll:271:73 prctl:157:167
pread64:17:67 preadv2:327:286 preadv:295:69 prlimit64:302:261 process_madvise:440:440
process_vm_readv:310:270 process_vm_writev:311:271 pselect6:270:72 ptrace:101:117 pwrite64:18:68
pwritev2:328:287 pwritev:296:70 quotactl:179:60 quotactl_fd:443:443 read:0:63 readlink:89:-
readlinkat:267:78 readv:19:65 reboot:169:142 recvfrom:45:207 recvmmsg:299:243 recvmsg:47:212
removexattr:197:14 rename:82:- renameat2:316:276 renameat:264:38 request_key:249:218
restart_syscall:219:128 rmdir:84:- rseq:334:293 rt_sigaction:13:134 rt_sigpending:127:136
rt_sigprocmask:14:135 rt_sigreturn:15:139 rt_sigsuspend:130:133 rt_sigtimedwait:128:137
sched_getaffinity:204:123 sched_yield:24:124 select:23:- sendfile:40:71 sendmmsg:307:269
sendmsg:46:211 sendto:44:206 set_robust_list:273:99 set_tid_address:218:96 setdomainname:171:162
sethostname:170:161 setitimer:38:103 setns:308:268 setpgid:109:154 setsid:112:157 setsockopt:54:208
settimeofday:164:170 setxattr:188:5 shutdown:48:210 sigaltstack:131:132 socket:41:198
socketpair:53:199 stat:4:- statfs:137:43 statmount:457:457 statx:332:291 swapoff:168:225
swapon:167:224 symlink:88:- symlinkat:266:36 sysinfo:99:179 syslog:103:116 tgkill:234:131 time:201:-
timerfd_create:283:85 timerfd_gettime:287:87 timerfd_settime:286:86 times:100:153 truncate:76:45
umask:95:166 umount2:166:39 uname:63:160 unlink:87:- unlinkat:263:35 unshare:272:97
userfaultfd:323:282 utimensat:280:88 vfork:58:- vhangup:153:58 wait4:61:260 waitid:247:95 write:1:64
writev:20:66
"""


def numbers(column: int) -> dict[str, int]:
    """The table by name: column 1 is x86_64, column 2 the generic one."""
    rows = (entry.split(":") for entry in _NUMBERS.split())
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}
