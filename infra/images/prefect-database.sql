-- Prefect keeps its state beside ours, in a database of its own. The postgres image runs this once, when its volume is new.
CREATE DATABASE prefect;
