# Gives a unit its cards: those that it had, where it still has them, else cards.py chooses.
#
# `sh cards.sh PYTHON UNIT WORD…` with the words of `cards.py take`; it needs a POSIX shell and
# flock, and nothing of envbuild. A unit runs it before its program (ExecStartPre=): a service that
# is started again is ready sooner without Python.
#
# What a unit got is in its file of variables, which whoever takes its cards removes first, under
# the lock that is waited for here. It takes none of a unit whose cgroup is there, as this one's is.

here=${0%/*}
python=$1 unit=$2
shift
root='' before=''
for word; do
    [ "$before" = --root ] && root=$word
    before=$word
done
own=$root/run/envbuild

# Reads `# WORDS` and `# ADDRESS=MINOR …`, and looks whether that is what there is.
has() {
    [ -r "$own/cards/$unit.env" ] || return 1
    { read -r words && read -r cards; } <"$own/cards/$unit.env"
    [ "$words" = "# $*" ] && [ "${cards#\# }" != "$cards" ] || return 1
    [ -e "$root/run/systemd/system.control/$unit.d/50-DeviceAllow.conf" ] || return 1
    for card in ${cards#\# }; do
        [ -d "$root/proc/driver/nvidia/gpus/${card%=*}" ] || return 1
        for part in "$root/proc/driver/nvidia/capabilities/gpu${card#*=}"/mig/gi*; do
            [ -e "$part" ] && return 1
        done
    done
    return 0
}

if [ -r "$own/cards.lock" ]; then
    exec 9<"$own/cards.lock"
    if flock 9 2>/dev/null && has "$@"; then
        echo "$unit keeps its cards" >&2
        exit 0
    fi
    exec 9<&-
fi
exec "$python" -I -S "$here/cards.py" take "$@"
