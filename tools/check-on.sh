#!/usr/bin/env bash
# Builds and tests this tree on another Debian release, in a folder (chroot) on this machine. Needs root.
#
#     tools/check-on.sh trixie                 the whole build and every test that is not slow
#     tools/check-on.sh trixie -- COMMAND...   that command instead, in the copied tree
#
# The release lives under $FF_CHECK_CACHE (default ~/.cache/ff), outside of the tree, and is kept for the next time,
# build folder included. The tree is copied as git knows it: tracked files and new ones that are not ignored.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

usage() { sed -n '2,8s/^# \{0,1\}//p' "$0"; }

release=${1-}
case $release in
  bookworm | trixie) shift ;;
  *) usage >&2; exit 2 ;;
esac
if [[ ${1-} == -- ]]; then shift; fi
if ((EUID != 0)); then
  echo "check-on: a chroot needs root" >&2
  exit 3
fi

chroot_dir=${FF_CHECK_CACHE:-$HOME/.cache/ff}/$release
if ! command -v debootstrap >/dev/null; then
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends debootstrap
fi
if [[ ! -e $chroot_dir/.complete ]]; then
  echo "== $release into $chroot_dir"
  rm -rf --one-file-system "$chroot_dir"
  mkdir -p "$chroot_dir"
  debootstrap --variant=minbase "$release" "$chroot_dir"
  touch "$chroot_dir/.complete"
fi
cp -L /etc/resolv.conf "$chroot_dir/etc/resolv.conf"
for file in /etc/apt/apt.conf.d/*; do  # how this machine reaches the archive, without the hooks of containers
  if grep -qiE 'proxy|verify-peer|cainfo' "$file"; then cp -L "$file" "$chroot_dir/etc/apt/apt.conf.d/"; fi
done

echo "== copying the tree"
copy=$chroot_dir/src/ff
mkdir -p "$copy"
find "$copy" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf --one-file-system {} +
(cd "$root" && git -c safe.directory="$root" ls-files -z --cached --others --exclude-standard |
  while IFS= read -r -d '' file; do if [[ -e $file ]]; then printf '%s\0' "$file"; fi; done |
  tar --null -T - -cf -) | tar -C "$copy" -xf -

# Runs in the chroot, its mounts seen by itself only and gone with it.
inside() {
  # shellcheck disable=SC2016  # expanded by the inner shell
  unshare --mount --fork bash -c '
    set -e
    dir=$1; shift
    mount -t proc proc "$dir/proc"
    mount -t tmpfs tmpfs "$dir/tmp"
    mount --rbind /dev "$dir/dev"
    mount --rbind /sys "$dir/sys"
    exec chroot "$dir" /usr/bin/env HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
      OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
      bash -c "cd /src/ff && $*"
  ' inside "$chroot_dir" "$@"
}

echo "== packages"
inside tools/install-deps.sh
if (($# > 0)); then
  echo "== $*"
  inside "$*"
else
  echo "== build"
  inside 'cmake --preset release && cmake --build --preset release'
  echo "== tests"
  inside 'ctest --preset release'
fi
echo "check-on: $release passed"
