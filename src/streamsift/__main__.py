"""Run the command line: `python -m streamsift`."""

from streamsift.command.main import main

if __name__ == "__main__":
    main()
