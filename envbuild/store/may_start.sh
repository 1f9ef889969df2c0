# Says whether this host may run a generation; a copy lies in each one, beside its needs.json.
#
# `sh may_start.sh WHAT SECONDS`: WHAT is `cards` for a program that uses some, else `host`. It
# needs a POSIX shell, getconf, grep and sleep, and nothing of envbuild; systemd runs it before each start
# (ExecCondition=). Its last line on stderr is the reason.
#
#   0         it may
#   101-107   it may not, and waiting does not help
#   255       not yet: what may come did not come within SECONDS
#
# A third word is the root of another host's files.

here=${0%/*}
what=${1:-host} seconds=${2:-0} root=${3:-}
platform='' cpu='' glibc='' driver='' branches='' floor='' codes='' cards=''

no() {
    echo "envbuild: $2: $3" >&2
    exit "$1"
}

# Reads needs.json as it is written: one field a line.
read_needs() {
    field=
    while IFS= read -r line; do
        case $line in
        ' "'*'": {')
            field=${line#*'"'}
            field=${field%%'"'*}
            ;;
        '  "value": "'*)
            value=${line#'  "value": "'}
            value=${value%'",'}
            [ "$value" = none ] && continue
            case $field in
            platform) platform=$value ;;
            cpu) cpu=$value ;;
            glibc) glibc=$value ;;
            driver) driver=$value ;;
            branches) branches=$value ;;
            floor) floor=$value ;;
            codes) codes=$value ;;
            cards) cards=$value ;;
            esac
            ;;
        esac
    done <"$here/needs.json"
}

# Is version $1 before $2?
older() {
    a=$1. b=$2.
    while [ "$a$b" ]; do
        x=${a%%.*} y=${b%%.*}
        [ "${x:-0}" -lt "${y:-0}" ] && return 0
        [ "${x:-0}" -gt "${y:-0}" ] && return 1
        a=${a#*.} b=${b#*.}
    done
    return 1
}

same() {
    ! older "$1" "$2" && ! older "$2" "$1"
}

# Does version $1 begin as $2 does (550.54.*)?
within() {
    case $1. in
    "${2%'*'}"*) return 0 ;;
    esac
    return 1
}

# Is version $1 in the range $2?
fits() {
    rest=$2,
    while [ "$rest" ]; do
        one=${rest%%,*} rest=${rest#*,}
        wanted=${one#[<>=!~]}
        wanted=${wanted#=}
        case $one in
        '>='*) ! older "$1" "$wanted" || return 1 ;;
        '<='*) ! older "$wanted" "$1" || return 1 ;;
        '=='*'.*') within "$1" "$wanted" || return 1 ;;
        '!='*'.*') ! within "$1" "$wanted" || return 1 ;;
        '=='*) same "$1" "$wanted" || return 1 ;;
        '!='*) ! same "$1" "$wanted" || return 1 ;;
        '~='*) ! older "$1" "$wanted" && within "$1" "${wanted%.*}.*" || return 1 ;;
        '<'*) older "$1" "$wanted" || return 1 ;;
        '>'*) older "$wanted" "$1" || return 1 ;;
        esac
    done
}

look_at_processor() {
    # A program less to start, where the kernel has the file (6.1).
    { read -r machine <"$root/proc/sys/kernel/arch"; } 2>/dev/null || machine=$(uname -m)
    case $platform in
    linux-64) [ "$machine" = x86_64 ] || no 101 platform-differs "it is for $platform, and this host is $machine" ;;
    linux-aarch64) [ "$machine" = aarch64 ] || no 101 platform-differs "it is for $platform, and this host is $machine" ;;
    esac
    case $cpu in
    x86_64_v[234]) ;;
    *) return ;;
    esac
    # A shell reads byte by byte, and this file is long.
    flags=$(grep -m 1 '^flags' "$root/proc/cpuinfo" 2>/dev/null)
    [ "$flags" ] || return
    flags=" ${flags#*:} "
    wanted='cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3'
    case $cpu in
    *[34]) wanted="$wanted abm avx avx2 bmi1 bmi2 f16c fma movbe xsave" ;;
    esac
    case $cpu in
    *4) wanted="$wanted avx512f avx512bw avx512cd avx512dq avx512vl" ;;
    esac
    for flag in $wanted; do
        case $flags in
        *" $flag "*) ;;
        *) no 102 cpu-too-old "it is for $cpu, and this processor has no $flag" ;;
        esac
    done
}

look_at_glibc() {
    there=$(getconf GNU_LIBC_VERSION 2>/dev/null)
    there=${there#glibc }
    [ "$glibc" ] && [ "$there" ] || return 0
    fits "$there" "$glibc" || no 103 glibc-too-old "it needs glibc $glibc, and this host has $there"
}

# Finds the cards' device ids, and whether switches connect them.
find_cards() {
    found='' switches=''
    for place in "$root"/sys/bus/pci/devices/*; do
        { read -r vendor <"$place/vendor"; } 2>/dev/null || continue
        [ "$vendor" = 0x10de ] || continue
        read -r class <"$place/class"
        read -r device <"$place/device"
        case $class in
        0x03*) found="$found ${device#0x}" ;;
        0x0680*) switches=yes ;;
        esac
    done
    [ "$found" ] || no 104 card-needed "this host has no NVIDIA card"
}

look_at_driver() {
    { read -r version <"$root/sys/module/nvidia/version"; } 2>/dev/null || return 0
    fits "$version" "$driver" || no 105 driver-out-of-range "it is for driver $driver, and this host runs $version"
    if [ "$branches" ]; then
        case ",$branches," in
        *",R${version%%.*},"*) ;;
        *) no 105 driver-out-of-range "it is for the branches $branches, and this host runs $version" ;;
        esac
    fi
    if [ "$floor" ] && older "$version" "$floor"; then
        no 106 driver-too-old "this host runs $version, and $floor is needed"
    fi
}

# Does code of the target $1 run on a card of capability $2?
runs_on() {
    target=${1#sm_}
    target=${target#compute_}
    number=${target%[af]}
    card=${2%.*}${2#*.}
    case $1 in
    *a) [ "$number" = "$card" ] ;;
    compute_*[0-9]) [ "$card" -ge "$number" ] ;;
    *) [ "${card%?}" = "${number%?}" ] && [ "$card" -ge "$number" ] ;;
    esac
}

# Has one of the frameworks no code for capability $1?
lacks() {
    left="$codes; "
    while [ "$left" ]; do
        framework=${left%%; *} left=${left#*; }
        runs=
        for target_of in ${framework#*: }; do
            if runs_on "$target_of" "$1"; then
                runs=yes
                break
            fi
        done
        [ "$runs" ] || return 0
    done
    return 1
}

# Refuses where every card is known, and none has code.
look_at_codes() {
    [ "$codes" ] || return 0
    for id in $found; do
        capability=
        for pair in $cards; do
            case $pair in
            "$id="*) capability=${pair#*=} ;;
            esac
        done
        [ "$capability" ] || return 0
        lacks "$capability" || return 0
    done
    no 107 no-gpu-code "for no card of this host there is code; it holds $codes"
}

# Sets what is not there yet; its nodes have to be there before systemd decides what may be opened.
# Fabric manager runs where its pid file is (NVIDIA/gpu-driver-container, ubuntu22.04/nvidia-driver),
# or where systemd keeps the link of a unit that is active (src/core/unit.c,
# unit_export_invocation_id). The persistence daemon has a folder and in it a socket
# (NVIDIA/nvidia-persistenced, nvpd_defs.h).
look_at_nodes() {
    missing='' late=''
    for node in nvidiactl nvidia-uvm; do
        [ -e "$root/dev/$node" ] || missing="$missing /dev/$node" late=yes
    done
    [ -e "$root/sys/module/nvidia/version" ] || missing="$missing the driver" late=yes
    if [ "$switches" ]; then
        [ -e "$root/run/nvidia-fabricmanager/nv-fabricmanager.pid" ] ||
            [ -L "$root/run/systemd/units/invocation:nvidia-fabricmanager.service" ] ||
            missing="$missing nvidia-fabricmanager"
    fi
    if [ -d "$root/run/nvidia-persistenced" ]; then
        [ -S "$root/run/nvidia-persistenced/socket" ] || missing="$missing nvidia-persistenced"
    fi
}

wait_for_nodes() {
    look_at_nodes
    [ "$missing" ] || return 0
    again=$late pause=1 waited=0
    while [ "$missing" ] && [ "$waited" -lt "$seconds" ]; do
        sleep "$pause"
        waited=$((waited + pause)) pause=$((pause * 2))
        look_at_nodes
    done
    [ "$missing" ] && no 255 not-yet "not there after $waited s:$missing"
    [ "$again" ] && no 255 not-yet "the cards' nodes came late: it is started anew to see them"
    return 0
}

read_needs
look_at_processor
look_at_glibc
if [ "$what" = cards ]; then
    find_cards
    look_at_driver
    look_at_codes
    wait_for_nodes
    look_at_driver
fi
exit 0
