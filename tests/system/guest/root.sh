#!/bin/sh
# root.sh ROOT: what a Debian of unpacked packages needs to boot for the tests.
set -eu
root=$1
cp "$root/usr/share/base-passwd/passwd.master" "$root/etc/passwd"
cp "$root/usr/share/base-passwd/group.master" "$root/etc/group"
# With what libnss-systemd's own script would add: the names of DynamicUser=.
printf 'passwd: files systemd\ngroup: files systemd\nhosts: files dns\n' >"$root/etc/nsswitch.conf"
rm -rf "$root"/usr/share/doc "$root"/usr/share/man "$root"/usr/share/locale \
  "$root"/usr/share/info "$root"/var/cache/apt "$root"/var/lib/apt
echo machine >"$root/etc/hostname"
printf '127.0.0.1 localhost machine\n::1 localhost\n' >"$root/etc/hosts"
echo 0123456789abcdef0123456789abcdef >"$root/etc/machine-id"
echo '/dev/root / ext4 rw,relatime 0 0' >"$root/etc/fstab"
kernel=$(basename "$root"/lib/modules/*)
chroot "$root" ldconfig
chroot "$root" depmod "$kernel"
echo cards >"$root/etc/modules-load.d/cards.conf"
chroot "$root" systemd-sysusers
echo 'trainer:x:1000:1000::/home/trainer:/bin/sh' >>"$root/etc/passwd"
echo 'trainer:x:1000:' >>"$root/etc/group"
install -d -o 1000 -g 1000 "$root/home/trainer"

cd "$root/etc/systemd/system"
ln -s /lib/systemd/system/multi-user.target default.target
mkdir -p multi-user.target.wants
ln -s ../agent.service multi-user.target.wants/agent.service
for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer \
  e2scrub_reap.service fstrim.timer getty.target proc-sys-fs-binfmt_misc.automount dev-hugepages.mount \
  dev-mqueue.mount sys-kernel-debug.mount sys-kernel-tracing.mount modprobe@drm.service \
  systemd-binfmt.service systemd-firstboot.service systemd-networkd.service \
  systemd-pcrphase.service systemd-timesyncd.service; do
  ln -s /dev/null $unit
done
# A reload takes half the time without generators, and what is tested has none.
mkdir -p ../system-generators ../journald.conf.d
for generator in "$root"/lib/systemd/system-generators/*; do
  ln -s /dev/null "../system-generators/${generator##*/}"
done
printf '[Journal]\nStorage=persistent\nRateLimitBurst=0\n' >../journald.conf.d/tests.conf
