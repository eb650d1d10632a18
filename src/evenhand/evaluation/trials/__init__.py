"""Running a suite of tasks with several arms: the trials that `ab` compares."""
