"""What pyquern.offload is made of."""
