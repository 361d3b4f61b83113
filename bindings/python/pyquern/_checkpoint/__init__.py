"""The parts of checkpoints: pyquern.checkpoint, manager, torch_dcp and the integrations are made of them."""
