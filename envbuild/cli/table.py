"""The list of commands, so that `--help` and completion load none of them.

Each text is how the command's own help begins.
"""

SECTIONS: dict[str, dict[str, str]] = {
    "Recipes and locks": {
        "new": "Write recipes/NAME.yaml, commented, such that it locks as it is.",
        "schema": "Print the JSON Schema of recipes.",
        "check": "Say whether a recipe is fine: its text, its lock, both against what is known.",
        "lock": "Solve recipes and write their locks.",
    },
    "Environments": {
        "create": "Create the environment of a recipe's lock, check it, and make it current.",
        "run": "Run a command in an environment.",
        "shell": "Start a shell in an environment.",
        "activate": "Print what activates an environment in this shell.",
        "list": "List the environments of the store, or the packages of one.",
        "info": "Show the installation, or one environment.",
        "status": "Say whether environments are what their recipes and locks say now.",
        "verify": "Compare every installed file with its digest.",
        "kernel": "Let Jupyter start an environment's Python; the environment must hold ipykernel.",
    },
    "Services": {
        "units": "Write the systemd units of a recipe's services, compare and install them.",
        "slice": "Share cards between jobs: memory, multiprocessors and PCIe traffic.",
    },
    "Generations": {
        "history": "Show who moved an environment, when, from and to which generation.",
        "switch": "Make another generation current.",
        "rollback": "Go back to the state before the current one.",
        "pin": "Keep a generation from `envbuild gc`.",
        "unpin": "Let `envbuild gc` remove a generation again.",
        "gc": "Remove old generations.",
        "remove": "Remove an environment with all its generations.",
    },
    "More": {
        "self": "Look after envbuild itself.",
        "config": "Show every setting with its value and where it was said.",
        "doctor": "Say what this host is, and whether it can run an environment.",
        "triangle": "Say which frameworks, CUDA, drivers and cards go together, and why not.",
        "explain": "Tell what is known about a topic, a code, a package, a card or a driver.",
        "facts": "Show what is known of drivers, CUDA, cards and frameworks, with sources.",
        "inspect": "Show what binaries hold: compilers, GPU code, needed libraries, glibc.",
        "wheel": "Say which wheels need a rebuild, and why; rebuild, list, show and collect them.",
        "store": "Keep the store itself in order, after a move and after an upgrade.",
        "channel": "Manage local channels: host Pythons and added archives.",
        "completion": "Print the completion script of a shell.",
    },
}

HELP: dict[str, str] = {
    name: text for section in SECTIONS.values() for name, text in section.items()
}

ALIASES: dict[str, str] = {"sync": "create", "shell-hook": "activate"}
