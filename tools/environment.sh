# Read by ./try and ./check, which set $command (their name) and $here (this folder's parent).
# `environment` makes $here/.venv and installs the package into it, or finds both done already.

# Nothing from outside the environment may be imported instead of what is in it.
unset PYTHONPATH PYTHONHOME

venv=$here/.venv
stamp=$venv/installed-for  # three lines: Python and folder; pyproject.toml's hash; extras
marker=$venv/installing    # the installing process; left behind, it means a half environment
log=$venv/install.log

say() {
    printf '%s: %s\n' "$command" "$1" >&2
}

stop() {
    say "$2"
    exit "$1"
}

# environment [EXTRAS]: quick when nothing changed since the last time.
environment() {
    extras=${1:-}
    if ready; then return; fi
    refuse_to_share
    reason=$(unusable)
    existed=yes
    if [ -n "$reason" ] || [ ! -e "$venv" ]; then
        existed=
        find_python
        create
    fi
    install
    if [ "$command" = ./try ]; then warm_up; fi
}

# Prints the environment's Python version and folder; fails when its Python does not run.
place() {
    "$venv/bin/python" -I -c 'import sys; print(sys.version.split()[0], sys.argv[1])' "$here" \
        2>/dev/null
}

digest() {
    "$venv/bin/python" -I -c '
import hashlib, sys
print(hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest())' "$here/pyproject.toml"
}

read_stamp() {
    old_place='' old_digest='' old_extras=''
    if [ -f "$stamp" ]; then
        { IFS= read -r old_place && IFS= read -r old_digest && IFS= read -r old_extras; } \
            <"$stamp" || old_place=
    fi
}

ready() {
    read_stamp
    [ ! -e "$marker" ] && [ -n "$old_place" ] && [ -x "$venv/bin/maxmargin" ] &&
        [ "$(place)" = "$old_place" ] && [ "$(digest)" = "$old_digest" ] && same_python &&
        { [ "$extras" = "$old_extras" ] || [ "$old_extras" = test ]; }  # test has all the others
}

# PYTHON=... asks for a version; without it the environment's own will do.
same_python() {
    [ -z "${PYTHON:-}" ] ||
        [ "$("$PYTHON" -I -c 'import sys; print(sys.version.split()[0])' 2>&1)" = \
            "${old_place%% *}" ]
}

refuse_to_share() {
    owner=
    if [ -f "$marker" ]; then read -r owner <"$marker" || :; fi
    if [ -n "$owner" ] && [ "$owner" != $$ ] && kill -0 "$owner" 2>/dev/null; then
        stop 1 "process $owner is installing into .venv; wait for it, or remove .venv if it is not"
    fi
}

# Says why the environment must be made again; says nothing when it can be kept and updated.
unusable() {
    if [ ! -e "$venv" ]; then
        return
    elif [ -e "$marker" ]; then
        echo "the last installation into .venv did not finish"
    elif ! now=$(place); then
        echo "the Python of .venv does not run"
    elif [ -n "$old_place" ] && [ "$now" != "$old_place" ]; then
        echo ".venv was made for another Python or another folder"
    elif [ -n "$old_place" ] && ! same_python; then
        echo ".venv was made with another Python than $PYTHON"
    fi
}

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        set -- "$PYTHON"
    else
        set -- python3.14 python3.13 python3.12 python3.11 python3 python
    fi
    for python; do
        # A name on PATH proves nothing (it may be a launcher without a version behind it): run it.
        if "$python" -I -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
        then
            can_make_environments
            return
        fi
    done
    if [ -n "${PYTHON:-}" ]; then
        stop 2 "PYTHON=$PYTHON is not a Python 3.11 or newer; set it to one, or leave it unset"
    fi
    stop 2 "no Python 3.11 or newer found (tried $*); install one, or set PYTHON=/path/to/it"
}

can_make_environments() {
    if ! "$python" -I -c 'import venv, ensurepip' 2>/dev/null; then
        stop 2 "$python cannot make environments (no venv or ensurepip);\
 on Debian or Ubuntu: apt install python3-venv"
    fi
}

create() {
    if [ -n "$reason" ]; then
        say "$reason: starting afresh"
        rm -rf "$venv"
    fi
    say "making .venv with $python"
    # mkdir, not mkdir -p: of two commands started together only one gets past this line.
    mkdir "$venv" || stop 1 "cannot make the folder $venv"
    echo $$ >"$marker"
    if ! "$python" -I -m venv "$venv" >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        rm -rf "$venv"
        stop 2 "$python could not make an environment in $here (its words are above)"
    fi
}

more() {
    if [ "$extras" = test ]; then echo " and what its tests need"; fi
}

install() {
    # An interruption must leave the marker, whatever pip makes of the signal.
    trap 'exit 130' INT
    trap 'exit 143' HUP TERM
    echo $$ >"$marker"
    say "installing maxmargin$(more) (a minute or two, once)"
    if ! pip_install >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        # pip gave up in good order: an environment that worked before still does.
        if [ -n "$existed" ]; then rm -f "$marker"; fi
        stop 1 "pip could not install maxmargin (its last words are above);\
 is a package index reachable?"
    fi
    { place && digest && printf '%s\n' "$extras"; } >"$stamp.new"
    mv "$stamp.new" "$stamp"
    rm -f "$marker"
    trap - INT HUP TERM
}

# The environment is good without it: loops are then compiled when they are needed.
warm_up() {
    say "compiling numerical loops (a minute or less on most machines, once)"
    "$venv/bin/maxmargin" warm-up >"$log" 2>&1 ||
        say "that did not work (see .venv/${log##*/}); they will be compiled when they are needed"
}

pip_install() (
    cd "$here" || exit 1
    # Environments made by other tools may come without pip.
    "$venv/bin/python" -I -c 'import pip' || "$venv/bin/python" -I -m ensurepip || exit 1
    "$venv/bin/python" -I -m pip install --disable-pip-version-check --no-input \
        --progress-bar off -e ".${extras:+[$extras]}"
)
