"""The list of commands, so that `--help` and completion load none of them."""

SECTIONS: dict[str, dict[str, str]] = {
    "Recipes and locks": {
        "new": "Write a commented recipe that locks as it is.",
        "schema": "Print the JSON Schema of recipes, for editors.",
        "lock": "Solve recipes and write their locks.",
    },
    "Environments": {
        "create": "Create the environment of a lock (again: nothing to do).",
        "run": "Run a command in an environment.",
        "shell": "Start a shell in an environment; `exit` returns.",
        "activate": "Print what activates an environment in this shell (bash or zsh).",
        "list": "List the environments of the store, or the packages of one.",
        "info": "Show the installation, or one environment: what it was made from and how sure that is.",
        "status": "Say whether environments answer their recipes and locks.",
        "verify": "Compare every installed file with its digest; every difference is named.",
    },
    "Generations": {
        "history": "Show who moved an environment, when, from and to which generation.",
        "switch": "Make another generation current.",
        "rollback": "Go back to the state before the current one; again, and it goes further back.",
        "pin": "Keep a generation from gc.",
        "unpin": "Let gc remove a generation again.",
        "pin": "Keep a generation from `envbuild gc`, until it is unpinned.",
        "unpin": "Let `envbuild gc` remove a generation again.",
        "gc": "Remove old generations, of one environment or of all.",
        "remove": "Remove an environment with all its generations and its history.",
    },
    "More": {
        "channel": "Manage local channels: host Pythons and added archives.",
        "completion": "Print the completion script of a shell.",
    },
}

HELP: dict[str, str] = {
    name: text for section in SECTIONS.values() for name, text in section.items()
}

ALIASES: dict[str, str] = {"sync": "create", "shell-hook": "activate"}
