# Runs a command in the bare root, in the clone of the repository, with nothing but the toolchain from this machine.
# Above stand: root, the folder; toolchain, cargo_home and target, the folders of this machine that are mounted into it;
# variables, the environment beside HOME and PATH. Without a command, a shell is opened.
set -eu
if [ "${1-}" != --inside ]; then
    # A mount and a process namespace of its own: nothing that is mounted is seen outside, and everything ends together.
    exec unshare --mount --pid --fork --kill-child -- sh "$0" --inside "$@"
fi
shift
mount --bind "$root" "$root"
cd "$root"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
# The devices of this machine, with terminals and shared memory of its own.
mount --bind /dev dev
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t tmpfs -o mode=1777 tmpfs tmp
mount --bind "$toolchain" opt/rust
mount -o remount,bind,ro opt/rust
# The lock as well: another cargo outside may unpack the same crate.
mount --bind "$cargo_home/registry" root/.cargo/registry
mount --bind "$cargo_home/.package-cache" root/.cargo/.package-cache
mount --bind "$target" srv/ringer/target
# The new root instead of a chroot: tests make mount namespaces, and those need a root that is a mount point.
pivot_root . .
umount -l .
cd /srv/ringer
# This shell stays: it is the first process of the namespace and takes the orphans.
set +e
# shellcheck disable=SC2086 # Words are wanted: NAME=VALUE, quoted already.
eval "env -i HOME=/root PATH=/opt/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin $variables" \
    'sh -c "${*:-exec sh -i}"'
exit $?
