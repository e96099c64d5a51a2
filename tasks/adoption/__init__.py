"""Taking over what a target serves: reads its documents, and says which of its stores can be trusted."""
